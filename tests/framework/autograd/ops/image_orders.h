// Operations on every storage order that images, or sequences, can be in.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/ops/dropout.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/autograd/ops/shape.h"

namespace lacuna::test {

struct ImageOperation {
  std::string name;
  std::function<Variable(const Variable&)> op;
};

inline ParameterPtr normal_parameter(const std::string& name, const Shape& shape) {
  auto p = std::make_shared<Parameter>(shape, Initializer::constant(0.0));
  p->set_name(name);
  p->assign(normal_tensor(name, shape, 0.3));
  return p;
}

/// Operations that take images [n, channels, height, width] as well as sequences [n, channels,
/// length], of the sizes in `shape` (channels are a multiple of four), and a test's own.
inline std::vector<ImageOperation> with_operations_of_any_rank(const Shape& shape,
                                                               std::vector<ImageOperation> own) {
  const int64_t last = shape.features(), channels = shape[1];
  std::vector<int64_t> by_channel(static_cast<size_t>(shape.rank()) - 1, 1);
  by_channel[0] = channels;
  std::vector<ImageOperation> all = {
      {"relu", [](const Variable& x) { return relu(x); }},
      {"gelu", [](const Variable& x) { return gelu(x); }},
      {"dropout", [](const Variable& x) { return dropout(x, 0.4, CounterRng(5, "dropout")); }},
      {"flatten", [](const Variable& x) { return flatten(x); }},
      {"x + x", [](const Variable& x) { return add(x, x); }},
      {"x + row-major constant",
       [shape](const Variable& x) { return add(x, normal_tensor("constant", shape)); }},
      {"x times something by channel",
       [factors = Shape(by_channel)](const Variable& x) {
         return multiply(x, normal_tensor("factors", factors));
       }},
      {"concatenated with itself",
       [](const Variable& x) {
         const std::vector<Variable> both{x, scale(x, 2.0f)};
         return concatenate(both, 1);
       }},
      {"group_norm",
       [channels](const Variable& x) {
         return group_norm(x, normal_tensor("w", {channels}), normal_tensor("b", {channels}),
                           {.groups = 4});
       }},
      {"layer_norm",
       [last](const Variable& x) {
         // Of two values a larger eps keeps their difference from being divided by itself.
         return layer_norm(x, normal_tensor("w", {last}), normal_tensor("b", {last}), {.eps = 1.0});
       }},
      {"linear of rows",
       [last](const Variable& x) {
         return linear(x, normal_parameter("rows", {5, last}), {});
       }},
  };
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

/// The output, and the gradient of the input, are within 2e-6 of those of the row-major input: sums
/// go in another order; most operations give the same bits.
inline void expect_same_in_every_order(const ImageOperation& operation, const Shape& shape) {
  std::vector<float> y, dx;
  for (const Order order : image_orders()) {
    SCOPED_TRACE(operation.name + " of " + to_string(order));
    const Variable x = Variable::leaf(normal_tensor("x", shape).to(order));
    const Variable output = operation.op(x);
    backward(output, normal_tensor("dy", output.shape()));
    ASSERT_EQ(x.gradient().shape(), shape);
    if (order == Order::RowMajor) {
      y = output.value().to_vector();
      dx = x.gradient().to_vector();
      continue;
    }
    EXPECT_LE(largest_error(output.value().to_vector(), y), 2e-6);
    EXPECT_LE(largest_error(x.gradient().to_vector(), dx), 2e-6);
  }
}

}  // namespace lacuna::test
