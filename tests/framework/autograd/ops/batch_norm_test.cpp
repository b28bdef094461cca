#include "lacuna/framework/autograd/ops/batch_norm.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::batch_norm_test {
namespace {

using test::ComplexArray;
using testing::ThrowsMessage;
using Inputs = std::vector<Variable>;
using Arrays = std::vector<ComplexArray>;

constexpr double kEps = 0.1;

Variable norm(const Variable& x, const Variable& weight, const Variable& bias) {
  return batch_norm(x, weight, bias, channel_moments(x), MomentsOf::Batch, {.eps = kEps});
}

std::vector<Order> orders_of(const Shape& shape) {
  if (shape.rank() == 4) return test::image_orders();
  return {Order::RowMajor, Order::BatchSlabs};
}

// Sizes: one value a channel short of two; one slab and one block and a bit more; batches over two
// slabs; planes of one pixel.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{2, 1},       {7, 3},        {67, 2},
                                         {3, 2, 5},    {17, 3, 2},    {2, 1, 1, 1},
                                         {3, 2, 2, 5}, {17, 2, 3, 1}, {2, 17, 1, 3}};
  return all;
}

TEST(BatchNormOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : shapes()) {
    for (const Order order : orders_of(shape)) {
      SCOPED_TRACE(to_string(order));
      test::check_derivatives({
          .shapes = {shape, Shape{shape[1]}, Shape{shape[1]}},
          .op = [](const Inputs& in) { return norm(in[0], in[1], in[2]); },
          .definition =
              [&](const Arrays& in) {
                return test::batch_norm_definition(shape, kEps, in[0], in[1], in[2]);
              },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

TEST(BatchNormOp, DerivativesWithoutWeightAndBiasAgreeWithTheDefinition) {
  for (const Shape& shape : shapes()) {
    test::check_derivatives({
        .shapes = {shape},
        .op = [](const Inputs& in) { return norm(in[0], {}, {}); },
        .definition =
            [&](const Arrays& in) {
              return test::batch_norm_definition(shape, kEps, in[0], {}, {});
            },
        .tolerance = 2e-6,
    });
  }
}

// No gradient flows through moments from elsewhere.
TEST(BatchNormOp, DerivativesByGivenMomentsAgreeWithTheDefinition) {
  for (const Shape& shape : shapes()) {
    ChannelMoments moments;
    for (int64_t c = 0; c < shape[1]; ++c) {
      moments.mean.push_back(0.5 - 0.25 * static_cast<double>(c));
      moments.variance.push_back(0.5 + static_cast<double>(c));
    }
    for (const Order order : orders_of(shape)) {
      test::check_derivatives({
          .shapes = {shape, Shape{shape[1]}, Shape{shape[1]}},
          .op =
              [&](const Inputs& in) {
                return batch_norm(in[0], in[1], in[2], moments, MomentsOf::Elsewhere,
                                  {.eps = kEps});
              },
          .definition =
              [&](const Arrays& in) {
                const test::ChannelDefinition of(shape);
                ComplexArray y(in[0].size());
                for (int64_t c = 0; c < of.channels; ++c) {
                  const auto at = static_cast<size_t>(c);
                  const double deviation = std::sqrt(moments.variance[at] + kEps);
                  of.for_each(c, [&](size_t i) {
                    y[i] = (in[0][i] - moments.mean[at]) / deviation * in[1][at] + in[2][at];
                  });
                }
                return y;
              },
          .tolerance = 2e-6,
          .order = order,
      });
    }
  }
}

TEST(BatchNormOp, MomentsAreThoseOfEachChannel) {
  for (const Shape& shape : shapes()) {
    const Tensor x = test::normal_tensor("x", shape);
    const ComplexArray values = test::convert<test::Complex>(x.to_vector());
    const test::ChannelDefinition of(shape);
    for (const Order order : orders_of(shape)) {
      const ChannelMoments moments = channel_moments(x.to(order));
      ASSERT_EQ(moments.mean.size(), static_cast<size_t>(shape[1]));
      for (int64_t c = 0; c < shape[1]; ++c) {
        // Sums of some floats at a time are float32.
        EXPECT_NEAR(moments.mean[static_cast<size_t>(c)], of.mean(values, c).real(), 1e-6);
        EXPECT_NEAR(moments.variance[static_cast<size_t>(c)], of.variance(values, c).real(), 2e-6);
      }
    }
  }
}

TEST(BatchNormOp, TakesAnEmptyBatchByGivenMoments) {
  for (const Shape& shape : {Shape{0, 3}, Shape{0, 3, 2, 2}}) {
    const Variable y = batch_norm(Tensor::zeros(shape), {}, {},
                                  {.mean = {0, 0, 0}, .variance = {1, 1, 1}}, MomentsOf::Elsewhere);
    EXPECT_EQ(y.value().shape(), shape);
    EXPECT_EQ(relu(y).value().shape(), shape);
  }
}

// Of a channel whose values are all equal: (x − mean) is zero, and eps keeps the quotient finite.
TEST(BatchNormOp, OfAConstantChannelIsTheBias) {
  const Variable x = Variable::leaf(Tensor::full({3, 2, 2, 2}, 7.0f));
  const Variable y = batch_norm(x, Tensor::full({2}, 2.0f), Tensor::full({2}, 0.5f),
                                channel_moments(x), MomentsOf::Batch);
  // scale · x + shift, where scale is 2 / √1e-5 and both are 4427: half an ulp of each of them.
  EXPECT_LE(test::largest_error(y.value().to_vector(), std::vector<double>(24, 0.5)), 5e-4);
  backward(y, Tensor::full({3, 2, 2, 2}, 1.0f));
  // A constant is all that the gradient was.
  EXPECT_LE(test::largest_error(x.gradient().to_vector(), std::vector<double>(24, 0.0)), 5e-4);
}

// The mean is far from zero: a difference of the sums of squares would keep no digit of it.
TEST(BatchNormOp, KeepsTheVarianceOfValuesFarFromZero) {
  const Shape shape{16, 2, 3, 3};
  const std::vector<float> noise = test::normal_values("noise", shape.numel());
  std::vector<float> values(noise.size());
  for (size_t i = 0; i < noise.size(); ++i) values[i] = 1000.0f + noise[i];
  const ComplexArray x = test::convert<test::Complex>(values);
  const test::ChannelDefinition of(shape);
  for (const Order order : test::image_orders()) {
    const ChannelMoments moments = channel_moments(Tensor::from(shape, values).to(order));
    for (int64_t c = 0; c < 2; ++c) {
      // Half of the ten bits that float32 keeps below the point of 1000 and its square's sums.
      EXPECT_NEAR(moments.variance[static_cast<size_t>(c)], of.variance(x, c).real(), 1e-2)
          << to_string(order);
    }
  }
}

TEST(BatchNormOp, PassesNaNOn) {
  Tensor x = test::normal_tensor("x", {4, 2, 2, 2});
  x.mutable_data()[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = relu(norm(x, {}, {})).value().to_vector();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[4]));
}

TEST(BatchNormOp, ShapesThatDoNotFitAreNamed) {
  const ChannelMoments two{.mean = {0, 0}, .variance = {1, 1}};
  EXPECT_THAT(
      [&] {
        batch_norm(Tensor::zeros({4, 3}), Tensor::zeros({3}), {}, two, MomentsOf::Batch);
      },
      ThrowsMessage<ShapeError>("batch_norm: x [4, 3] needs a weight, a bias and moments of shape "
                                "[3], found [3], none and [2]"));
  EXPECT_THAT(
      [&] {
        batch_norm(Tensor::zeros({4, 2}), {}, Tensor::zeros({1}), two, MomentsOf::Batch);
      },
      ThrowsMessage<ShapeError>("batch_norm: x [4, 2] needs a weight, a bias and moments of shape "
                                "[2], found none, [1] and [2]"));
  EXPECT_THAT([] { channel_moments(Tensor::zeros({4})); },
              ThrowsMessage<ShapeError>("batch_norm: needs [batch, channels], [batch, channels, "
                                        "length] or [batch, channels, height, width], found [4]"));
  EXPECT_THAT(
      [] {
        channel_moments(Tensor::zeros({4, 1, 1, 1, 1}));
      },
      ThrowsMessage<ShapeError>(testing::HasSubstr("found [4, 1, 1, 1, 1]")));
}

}  // namespace
}  // namespace lacuna::batch_norm_test
