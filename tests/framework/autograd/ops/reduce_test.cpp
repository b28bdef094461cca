#include "lacuna/framework/autograd/ops/reduce.h"

#include <gmock/gmock.h>

#include <numeric>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::reduce_test {
namespace {

using test::ComplexArray;
using testing::ThrowsMessage;

ComplexArray total(const ComplexArray& x) {
  return {std::accumulate(x.begin(), x.end(), test::Complex(0.0))};
}

TEST(ReduceOps, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{67, 3}, Shape{2, 3, 5}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      test::check_derivatives({
          .shapes = {shape},
          .op = [](const auto& in) { return sum(in[0]); },
          .definition = [](const auto& in) { return total(in[0]); },
          .order = order,
      });
      test::check_derivatives({
          .shapes = {shape},
          .op = [](const auto& in) { return mean(in[0]); },
          .definition =
              [&](const auto& in) {
                return ComplexArray{total(in[0])[0] / static_cast<double>(shape.numel())};
              },
          .order = order,
      });
    }
  }
}

TEST(ReduceOps, AMeanOfNothingIsAnError) {
  EXPECT_THAT(
      [] {
        mean(Tensor::zeros({0, 3}));
      },
      ThrowsMessage<ShapeError>("mean: needs at least one element, found [0, 3]"));
  EXPECT_EQ(sum(Tensor::zeros({0, 3})).value().item(), 0.0f);
}

}  // namespace
}  // namespace lacuna::reduce_test
