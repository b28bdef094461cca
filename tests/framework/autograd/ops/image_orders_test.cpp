// Operations that know nothing of images, behind a convolution that gives them in an order of its
// own: what they compute is the same as of row-major images.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_orders.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/dropout.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/autograd/ops/softmax.h"

namespace lacuna::image_orders_test {
namespace {

using test::ImageOperation;
using test::normal_parameter;

const Shape kImages{17, 16, 3, 2};  // two slabs, of which one has one example; one block

const std::vector<ImageOperation>& operations() {
  static const auto all = test::with_operations_of_any_rank(
      kImages,
      {
          {"leaky_relu", [](const Variable& x) { return leaky_relu(x, 0.1f); }},
          {"squared_relu", [](const Variable& x) { return squared_relu(x); }},
          {"gelu_tanh", [](const Variable& x) { return gelu_tanh(x); }},
          {"silu", [](const Variable& x) { return silu(x); }},
          {"sigmoid", [](const Variable& x) { return sigmoid(x); }},
          {"tanh", [](const Variable& x) { return lacuna::tanh(x); }},
          {"reshape",
           [](const Variable& x) {
             return reshape(x, {17, 6, 16});
           }},
          {"softmax", [](const Variable& x) { return softmax(x); }},
          {"scale", [](const Variable& x) { return scale(x, -2.0f); }},
          {"sum", [](const Variable& x) { return sum(x); }},
          {"mean", [](const Variable& x) { return mean(x); }},
          {"x x", [](const Variable& x) { return multiply(x, x); }},
          {"constant − x",
           [](const Variable& x) { return subtract(test::normal_tensor("constant", kImages), x); }},
          {"linear of flattened",
           [](const Variable& x) {
             return linear(flatten(x), normal_parameter("fc", {5, 96}), {});
           }},
          {"sigmoid, conv2d",
           [](const Variable& x) {
             return conv2d(sigmoid(x), normal_parameter("next", {4, 16, 3, 3}), {},
                           {.padding = {1, 1}});
           }},
          {"sigmoid, sparse conv2d",
           [](const Variable& x) {
             const ParameterPtr next = normal_parameter("next", {4, 16, 3, 3});
             next->set_pattern(
                 Pattern::make(csr_layout(), next->shape(), BitMask::ones(next->numel())));
             return conv2d(sigmoid(x), next, {}, {.padding = {1, 1}});
           }},
      });
  return all;
}

TEST(ImageOrders, AnyOperationTakesImagesAsTheyLie) {
  for (const ImageOperation& operation : operations()) {
    test::expect_same_in_every_order(operation, kImages);  // sums of up to 1632 floats
  }
}

TEST(ImageOrders, DropoutDrawsTheSameForEveryOrderOfImages) {
  const Tensor x = Tensor::full(kImages, 1.0f);
  const auto dropped = [&](Order order) {
    return dropout(x.to(order), 0.5, CounterRng(5, "dropout")).value().to_vector();
  };
  EXPECT_EQ(dropped(Order::ImageSlabs), dropped(Order::RowMajor));
  EXPECT_EQ(dropped(Order::ChannelBlocks), dropped(Order::RowMajor));
}

// Behind convolutions that give image slabs or channel blocks, not converted by a test.
TEST(ImageOrders, BehindConvolutionsOfEachLayoutAllIsTheSame) {
  const Tensor images = test::normal_tensor("images", {17, 3, 3, 2});
  for (const ImageOperation& c : operations()) {
    std::vector<std::vector<float>> expected;
    for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
      SCOPED_TRACE(c.name + " in " + std::string(layout->name()));
      const ParameterPtr weight = normal_parameter("weight", {16, 3, 3, 3});
      weight->set_pattern(Pattern::make(*layout, weight->shape(), BitMask::ones(weight->numel())));
      const Variable x = Variable::leaf(images);
      const Variable y = conv2d(x, weight, {}, {.padding = {1, 1}});
      const Variable output = c.op(y);
      backward(output, test::normal_tensor("dy", output.shape()));
      std::vector<std::vector<float>> results{
          output.value().to_vector(), x.gradient().to_vector(),
          weight->pattern()
              ->layout()
              .to_dense(*weight->pattern(), weight->gradient().storage())
              .to_vector()};
      if (expected.empty()) expected = results;
      for (size_t i = 0; i < results.size(); ++i) {
        // Convolutions of 27 terms in another order, and what is made of the differences.
        EXPECT_LE(test::largest_error(results[i], expected[i]), 1e-5) << i;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::image_orders_test
