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

// Two slabs, of which one has one example; a block of channels, or two with a part that is padding.
const Shape kImages[] = {{17, 16, 3, 2}, {17, 20, 3, 2}};

std::vector<ImageOperation> operations(const Shape& images) {
  const int64_t channels = images[1];
  return test::with_operations_of_any_rank(
      images,
      {
          {"leaky_relu", [](const Variable& x) { return leaky_relu(x, 0.1f); }},
          {"squared_relu", [](const Variable& x) { return squared_relu(x); }},
          {"gelu_tanh", [](const Variable& x) { return gelu_tanh(x); }},
          {"silu", [](const Variable& x) { return silu(x); }},
          {"sigmoid", [](const Variable& x) { return sigmoid(x); }},
          {"tanh", [](const Variable& x) { return lacuna::tanh(x); }},
          {"reshape",
           [channels](const Variable& x) {
             return reshape(x, {17, 6, channels});
           }},
          {"softmax", [](const Variable& x) { return softmax(x); }},
          {"scale", [](const Variable& x) { return scale(x, -2.0f); }},
          {"sum", [](const Variable& x) { return sum(x); }},
          {"mean", [](const Variable& x) { return mean(x); }},
          {"x x", [](const Variable& x) { return multiply(x, x); }},
          {"constant − x",
           [images](const Variable& x) {
             return subtract(test::normal_tensor("constant", images), x);
           }},
          {"linear of flattened",
           [images](const Variable& x) {
             return linear(flatten(x), normal_parameter("fc", {5, images.numel() / 17}), {});
           }},
          {"sigmoid, conv2d",
           [channels](const Variable& x) {
             return conv2d(sigmoid(x), normal_parameter("next", {4, channels, 3, 3}), {},
                           {.padding = {1, 1}});
           }},
          {"sigmoid, sparse conv2d",
           [channels](const Variable& x) {
             const ParameterPtr next = normal_parameter("next", {4, channels, 3, 3});
             next->set_pattern(
                 Pattern::make(csr_layout(), next->shape(), BitMask::ones(next->numel())));
             return conv2d(sigmoid(x), next, {}, {.padding = {1, 1}});
           }},
      });
}

TEST(ImageOrders, AnyOperationTakesImagesAsTheyLie) {
  for (const Shape& images : kImages) {
    SCOPED_TRACE(images.to_string());
    for (const ImageOperation& operation : operations(images)) {
      test::expect_same_in_every_order(operation, images);  // sums of up to 2040 floats
    }
  }
}

TEST(ImageOrders, DropoutDrawsTheSameForEveryOrderOfImages) {
  for (const Shape& images : kImages) {
    const Tensor x = Tensor::full(images, 1.0f);
    const auto dropped = [&](Order order) {
      return dropout(x.to(order), 0.5, CounterRng(5, "dropout")).value().to_vector();
    };
    EXPECT_EQ(dropped(Order::ImageSlabs), dropped(Order::RowMajor));
    EXPECT_EQ(dropped(Order::ChannelBlocks), dropped(Order::RowMajor));
  }
}

// The outputs and gradients of an operation behind a convolution with a weight in `layout`, whose
// image slabs or channel blocks are not converted by a test.
std::vector<std::vector<float>> behind_convolution(const ImageOperation& operation,
                                                   const Layout& layout, int64_t channels) {
  const ParameterPtr weight = normal_parameter("weight", {channels, 3, 3, 3});
  weight->set_pattern(Pattern::make(layout, weight->shape(), BitMask::ones(weight->numel())));
  const Variable x = Variable::leaf(test::normal_tensor("images", {17, 3, 3, 2}));
  const Variable output = operation.op(conv2d(x, weight, {}, {.padding = {1, 1}}));
  backward(output, test::normal_tensor("dy", output.shape()));
  return {output.value().to_vector(), x.gradient().to_vector(),
          layout.to_dense(*weight->pattern(), weight->gradient().storage()).to_vector()};
}

TEST(ImageOrders, BehindConvolutionsOfEachLayoutAllIsTheSame) {
  for (const Shape& images : kImages) {
    for (const ImageOperation& operation : operations(images)) {
      SCOPED_TRACE(operation.name + " of " + images.to_string());
      const auto expected = behind_convolution(operation, masked_layout(), images[1]);
      const auto sparse = behind_convolution(operation, csr_layout(), images[1]);
      for (size_t i = 0; i < sparse.size(); ++i) {
        // Convolutions of 27 terms in another order, and what is made of the differences.
        EXPECT_LE(test::largest_error(sparse[i], expected[i]), 1e-5) << i;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::image_orders_test
