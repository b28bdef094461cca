#include "lacuna/framework/autograd/ops/norm.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/rowwise/norm_reference.h"

namespace lacuna {
namespace {

using testing::ThrowsMessage;

TEST(LayerNormOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape :
       {Shape{3, 1}, Shape{7, 5}, Shape{9, 20}, Shape{2, 3, 17}, Shape{67, 3}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      const int64_t n = shape.features(), rows = shape.batch();
      test::check_derivatives({
          .shapes = {shape, Shape{n}, Shape{n}},
          .op = [](const auto& in) { return layer_norm(in[0], in[1], in[2], {.eps = 0.1}); },
          .definition =
              [&](const auto& in) {
                test::ComplexArray y(in[0].size()), mean(in[0].size()), deviation(in[0].size());
                reference::layer_norm(NormShape{rows, n}, 0.1, in[0].data(), in[1].data(),
                                      in[2].data(), y.data(), mean.data(), deviation.data());
                return y;
              },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

TEST(LayerNormOp, ShapesThatDoNotFitAreNamed) {
  EXPECT_THAT(
      [] {
        layer_norm(Tensor::zeros({2, 5}), Tensor::zeros({4}), Tensor::zeros({5}));
      },
      ThrowsMessage<ShapeError>("layer_norm: x [2, 5] needs a weight and a bias of shape [5], "
                                "found [4] and [5]"));
}

}  // namespace
}  // namespace lacuna
