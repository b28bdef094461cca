#include "lacuna/framework/autograd/ops/dropout.h"

#include <gmock/gmock.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/dropout_reference.hpp"

namespace lacuna::dropout_test {
namespace {

using testing::ThrowsMessage;

TEST(DropoutOp, DerivativesAgreeWithTheDefinition) {
  const DropoutMask mask{.rng = CounterRng(1, "drop", 5), .p = 0.4};
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 5}, Shape{2, 3, 17}, Shape{67, 3}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {shape},
          .op = [&](const auto& in) { return dropout(in[0], mask.p, mask.rng); },
          .definition =
              [&](const auto& in) {
                test::ComplexArray y(in[0].size());
                reference::dropout(mask, shape.batch(), shape.features(), in[0].data(), y.data());
                return y;
              },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(DropoutOp, AProbabilityOutOfRangeIsAnError) {
  const auto apply = [](double p) {
    return [p] { dropout(Tensor::zeros({2}), p, CounterRng(0, "")); };
  };
  EXPECT_THAT(apply(1.0),
              ThrowsMessage<ConfigError>("dropout: p must be in [0, 1), found 1.000000"));
  EXPECT_THROW(apply(-0.1)(), ConfigError);
  EXPECT_THROW(apply(NAN)(), ConfigError);
}

}  // namespace
}  // namespace lacuna::dropout_test
