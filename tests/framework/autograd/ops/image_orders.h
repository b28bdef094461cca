// Operations on every storage order that images, or sequences, can be in.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/engine.h"

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
