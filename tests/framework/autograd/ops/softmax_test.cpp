#include "lacuna/framework/autograd/ops/softmax.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/rowwise/softmax_reference.hpp"

namespace lacuna::softmax_test {
namespace {

using testing::ThrowsMessage;

TEST(SoftmaxOps, DerivativesAgreeWithTheDefinition) {
  for (const SoftmaxKind kind : {SoftmaxKind::Probabilities, SoftmaxKind::Logarithm}) {
    for (const Shape& shape : {Shape{1}, Shape{3, 1}, Shape{7, 10}, Shape{2, 3, 17}, Shape{0, 5}}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        test::check_derivatives({
            .shapes = {shape},
            .op =
                [&](const auto& in) {
                  return kind == SoftmaxKind::Logarithm ? log_softmax(in[0]) : softmax(in[0]);
                },
            .definition =
                [&](const auto& in) {
                  test::ComplexArray y(in[0].size());
                  reference::softmax(kind, shape.batch(), shape.features(), in[0].data(), y.data());
                  return y;
                },
            .spread = 2.0,
            .tolerance = 1e-6,
            .order = order,
        });
      }
    }
  }
}

TEST(SoftmaxOps, AScalarIsAnError) {
  EXPECT_THAT([] { softmax(Tensor::scalar(1.0f)); },
              ThrowsMessage<ShapeError>("softmax: needs [..., features], found a scalar []"));
  EXPECT_THAT([] { log_softmax(Tensor::scalar(1.0f)); },
              ThrowsMessage<ShapeError>("log_softmax: needs [..., features], found a scalar []"));
}

}  // namespace
}  // namespace lacuna::softmax_test
