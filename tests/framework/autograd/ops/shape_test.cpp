#include "lacuna/framework/autograd/ops/shape.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::shape_test {
namespace {

using testing::ThrowsMessage;

TEST(ShapeOps, KeepElementsAndGradients) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {Shape{67, 3, 2}},
        .op = [](const auto& in) { return flatten(in[0]); },
        .definition = [](const auto& in) { return in[0]; },
        .order = order,
    });
    test::check_derivatives({
        .shapes = {Shape{4, 3}},
        .op =
            [](const auto& in) {
              return reshape(in[0], {2, 6});
            },
        .definition = [](const auto& in) { return in[0]; },
        .order = order,
    });
  }
  EXPECT_EQ(flatten(Tensor::zeros({2, 3, 5})).shape(), (Shape{2, 15}));
  EXPECT_EQ(flatten(Tensor::zeros({7})).shape(), (Shape{7, 1}));
  EXPECT_EQ(flatten(Tensor::zeros({0, 3, 5})).shape(), (Shape{0, 15}));
}

TEST(ShapeOps, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        reshape(Tensor::zeros({2, 3}), {7});
      },
      ThrowsMessage<ShapeError>("reshape: [2, 3] has 6 elements, [7] has 7"));
  EXPECT_THAT([] { flatten(Tensor::scalar(1.0f)); },
              ThrowsMessage<ShapeError>("flatten: needs [batch, ...], found a scalar []"));
}

TEST(TransposeOp, ExchangesTheLastTwoDimensions) {
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    test::check_derivatives({
        .shapes = {Shape{2, 19, 6}},
        .op = [](const auto& in) { return transpose(in[0]); },
        .definition =
            [](const auto& in) {
              test::ComplexArray y(in[0].size());
              for (size_t at = 0; at < y.size(); ++at) {
                y[at / 114 * 114 + at % 6 * 19 + at % 114 / 6] = in[0][at];
              }
              return y;
            },
        .order = order,
    });
  }
  EXPECT_EQ(transpose(Tensor::zeros({2, 0, 3})).shape(), (Shape{2, 3, 0}));
  EXPECT_THAT([] { transpose(Tensor::zeros({3})); },
              ThrowsMessage<ShapeError>("transpose: needs [..., m, n], found [3]"));
}

}  // namespace
}  // namespace lacuna::shape_test
