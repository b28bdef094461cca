// The passes of batch normalization against their formulas in double, in every storage order.
#include "lacuna/framework/kernels/images/batch_norm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/kernels/images/image_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::batch_norm_test {
namespace {

// Sums of at most some thousand values in float, a rounding each.
constexpr double kRounding = 2e-5;

std::string name_of(const Shape& shape, Order order) {
  return shape.to_string() + " in " + to_string(order);
}

ChannelStatistics expected_statistics(const Tensor& x) {
  const auto channels = static_cast<size_t>(x.shape()[1]);
  ChannelStatistics s{std::vector<double>(channels), std::vector<double>(channels)};
  const double n = static_cast<double>(x.numel()) / static_cast<double>(channels);
  const float* x_at = x.data();
  test::for_each_element(x.shape(), [&](size_t i, size_t c) { s.mean[c] += x_at[i] / n; });
  test::for_each_element(x.shape(), [&](size_t i, size_t c) {
    const double distance = x_at[i] - s.mean[c];
    s.variance[c] += distance * distance / n;
  });
  return s;
}

TEST(ChannelStatistics, AreMeanAndBiasedVarianceInEveryOrder) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape);
    const ChannelStatistics expected = expected_statistics(x);
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(name_of(shape, order));
      const ChannelStatistics found = channel_statistics(test::with_dirty_padding(x, order));
      EXPECT_LT(test::largest_error(found.mean, expected.mean), kRounding);
      EXPECT_LT(test::largest_error(found.variance, expected.variance), kRounding);
      for (const double variance : found.variance) EXPECT_GE(variance, 0.0);
    }
  }
}

// As exact with a mean of 10,000 deviations as without: what is summed are distances.
TEST(ChannelStatistics, AMeanFarFromZeroCostsNoDigits) {
  for (const Shape& shape : {Shape{17, 3, 6, 7}, Shape{40, 16, 1, 1}, Shape{33, 18, 16, 16}}) {
    Tensor x = test::normal_tensor("x", shape);
    test::for_each_element(
        shape, [&](size_t i, size_t c) { x.mutable_data()[i] += c % 2 == 0 ? 1e4f : -1e4f; });
    const ChannelStatistics expected = expected_statistics(x);
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(name_of(shape, order));
      const ChannelStatistics found = channel_statistics(test::with_dirty_padding(x, order));
      EXPECT_LT(test::largest_error(found.mean, expected.mean), 1e-8);
      EXPECT_LT(test::largest_error(found.variance, expected.variance), kRounding);
    }
  }
}

TEST(ChannelStatistics, EqualValuesHaveNoVariance) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    for (const Order order : test::kImageOrders) {
      const ChannelStatistics found =
          channel_statistics(test::with_dirty_padding(Tensor::full(shape, 0.1f), order));
      for (const double mean : found.mean) EXPECT_EQ(mean, 0.1f);
      for (const double variance : found.variance) EXPECT_EQ(variance, 0.0);
    }
  }
}

TEST(ChannelStatistics, ANaNIsThatOfItsChannelAlone) {
  for (const Shape& shape : {Shape{17, 18, 3, 5}, Shape{16, 32, 1, 1}}) {
    for (const int64_t at : {int64_t{0}, shape.numel() - 1}) {
      Tensor x = test::normal_tensor("x", shape);
      x.mutable_data()[at] = std::numeric_limits<float>::quiet_NaN();
      const int64_t channel = at / (shape[2] * shape[3]) % shape[1];
      for (const Order order : test::kImageOrders) {
        SCOPED_TRACE(name_of(shape, order));
        const ChannelStatistics found = channel_statistics(x.to(order));
        for (int64_t c = 0; c < shape[1]; ++c) {
          EXPECT_EQ(std::isnan(found.mean[static_cast<size_t>(c)]), c == channel);
          EXPECT_EQ(std::isnan(found.variance[static_cast<size_t>(c)]), c == channel);
        }
      }
    }
  }
}

TEST(SumChannels, IsTheSumOfEachChannelInEveryOrder) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape);
    std::vector<double> expected(static_cast<size_t>(shape[1]));
    test::for_each_element(shape, [&](size_t i, size_t c) { expected[c] += x.data()[i]; });
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(name_of(shape, order));
      const Tensor found = sum_channels(test::with_dirty_padding(x, order));
      EXPECT_EQ(found.shape(), (Shape{shape[1]}));
      EXPECT_LT(test::largest_error(found.to_vector(), expected), kRounding);
    }
  }
}

// What channels are scaled by: other numbers in each.
std::vector<float> by_channel(const Shape& shape, const char* name) {
  return test::normal_values(name, shape[1]);
}

TEST(ChannelAffine, ScalesShiftsAddsAndRectifies) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape), added = test::normal_tensor("added", shape);
    const std::vector<float> scale = by_channel(shape, "scale"), shift = by_channel(shape, "shift");
    const float *x_at = x.data(), *added_at = added.data();
    for (const bool is_sum : {false, true}) {
      for (const Rectify rectify : {Rectify::No, Rectify::Yes}) {
        std::vector<double> expected(static_cast<size_t>(shape.numel()));
        test::for_each_element(shape, [&](size_t i, size_t c) {
          const double y =
              static_cast<double>(scale[c]) * x_at[i] + shift[c] + (is_sum ? added_at[i] : 0.0f);
          expected[i] = rectify == Rectify::Yes ? std::max(y, 0.0) : y;
        });
        for (const Order order : test::kImageOrders) {
          SCOPED_TRACE(name_of(shape, order));
          const Tensor y =
              channel_affine(test::with_dirty_padding(x, order), scale, shift,
                             is_sum ? test::with_dirty_padding(added, order) : Tensor(), rectify);
          EXPECT_EQ(y.order(), order);
          EXPECT_EQ(y.shape(), shape);
          EXPECT_LT(test::largest_error(y.to_vector(), expected), 1e-6);  // three roundings
          EXPECT_TRUE(test::has_zero_borders(y));
        }
      }
    }
  }
}

// Which some processors write around their caches.
TEST(ChannelAffine, LargeImagesAreNoOthers) {
  const Shape shape{40, 18, 60, 61};
  const Tensor x = test::normal_tensor("x", shape);
  const std::vector<float> scale = by_channel(shape, "scale"), shift = by_channel(shape, "shift");
  const float* x_at = x.data();
  std::vector<double> expected(static_cast<size_t>(shape.numel()));
  test::for_each_element(shape, [&](size_t i, size_t c) {
    expected[i] = std::max(static_cast<double>(scale[c]) * x_at[i] + shift[c], 0.0);
  });
  for (const Order order : test::kImageOrders) {
    SCOPED_TRACE(to_string(order));
    const Tensor y =
        channel_affine(test::with_dirty_padding(x, order), scale, shift, Tensor(), Rectify::Yes);
    EXPECT_LT(test::largest_error(y.to_vector(), expected), 1e-6);
    EXPECT_TRUE(test::has_zero_borders(y));
  }
}

TEST(ChannelAffine, LeavesItsInputsAlone) {
  const Shape shape{17, 3, 3, 5};
  const Tensor x = test::normal_tensor("x", shape);
  for (const Order order : test::kImageOrders) {
    const Tensor stored = x.to(order);
    const Tensor y = channel_affine(stored, {2, 2, 2}, {1, 1, 1}, stored, Rectify::No);
    EXPECT_FALSE(y.shares_storage_with(stored));
    EXPECT_EQ(stored.to_vector(), x.to_vector());
  }
}

TEST(ChannelAffine, NaNAndInfinityPassThroughTheReLU) {
  const Shape shape{17, 18, 3, 5};
  Tensor x = Tensor::full(shape, -1.0f);
  const std::vector<float> one(18, 1.0f), zero(18, 0.0f);
  for (const int64_t at : {int64_t{0}, int64_t{4000}, shape.numel() - 1}) {
    x.mutable_data()[at] = std::numeric_limits<float>::quiet_NaN();
  }
  x.mutable_data()[5] = std::numeric_limits<float>::infinity();
  x.mutable_data()[6] = -std::numeric_limits<float>::infinity();
  for (const Order order : test::kImageOrders) {
    SCOPED_TRACE(to_string(order));
    const std::vector<float> y =
        channel_affine(x.to(order), one, zero, Tensor(), Rectify::Yes).to_vector();
    int64_t nans = 0;
    for (const float value : y) nans += std::isnan(value);
    EXPECT_EQ(nans, 3);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[4000]) && std::isnan(y.back()));
    EXPECT_EQ(y[5], std::numeric_limits<float>::infinity());
    EXPECT_EQ(y[6], 0.0f);
  }
}

// The bits of y, as a ReLU that gave it leaves them for the gradient.
Tensor bits_of(const Tensor& y, Order order) {
  const std::vector<float> one(static_cast<size_t>(y.shape()[1]), 1.0f), none(one.size(), 0.0f);
  Tensor passed;
  channel_affine(test::with_dirty_padding(y, order), one, none, Tensor(), Rectify::No, &passed);
  return passed;
}

std::vector<NormSlopes> slopes(const std::vector<float>& a, const std::vector<float>& b,
                               const std::vector<float>& c) {
  std::vector<NormSlopes> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back({a[i], b[i], c[i]});
  return result;
}

TEST(NormGradientSums, AreThoseOfTheFormulas) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
    Tensor y = test::normal_tensor("y", shape);
    y.mutable_data()[0] = 0.0f;  // no gradient there
    const std::vector<float> mean = by_channel(shape, "mean"), inverse = by_channel(shape, "1/d");
    const float *x_at = x.data(), *y_at = y.data(), *dy_at = dy.data();
    for (const bool is_rectified : {false, true}) {
      const auto channels = static_cast<size_t>(shape[1]);
      std::vector<double> g(channels), gx(channels);
      test::for_each_element(shape, [&](size_t i, size_t c) {
        if (is_rectified && y_at[i] <= 0.0f) return;
        g[c] += dy_at[i];
        gx[c] +=
            static_cast<double>(dy_at[i]) * (static_cast<double>(x_at[i]) - mean[c]) * inverse[c];
      });
      for (const Order order : test::kImageOrders) {
        SCOPED_TRACE(name_of(shape, order));
        const NormGradientSums found = norm_gradient_sums(
            test::with_dirty_padding(dy, order), is_rectified ? bits_of(y, order) : Tensor(),
            test::with_dirty_padding(x, order), mean, inverse);
        EXPECT_LT(test::largest_error(found.g, g), kRounding);
        EXPECT_LT(test::largest_error(found.gx, gx), kRounding);
      }
    }
  }
}

TEST(ChannelAffineGradient, IsThatOfTheFormula) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
    Tensor y = test::normal_tensor("y", shape);
    y.mutable_data()[0] = 0.0f;
    const std::vector<float> a = by_channel(shape, "a"), b = by_channel(shape, "b"),
                             c = by_channel(shape, "c");
    const float *x_at = x.data(), *y_at = y.data(), *dy_at = dy.data();
    for (const bool is_rectified : {false, true}) {
      const auto size = static_cast<size_t>(shape.numel());
      std::vector<double> dx(size), g(size);
      test::for_each_element(shape, [&](size_t i, size_t k) {
        g[i] = is_rectified && y_at[i] <= 0.0f ? 0.0f : dy_at[i];
        dx[i] = a[k] * g[i] + static_cast<double>(b[k]) * x_at[i] + c[k];
      });
      for (const Order order : test::kImageOrders) {
        SCOPED_TRACE(name_of(shape, order));
        const Tensor passed = is_rectified ? bits_of(y, order) : Tensor();
        Tensor dg;
        const Tensor found = channel_affine_gradient(test::with_dirty_padding(dy, order), passed,
                                                     test::with_dirty_padding(x, order),
                                                     slopes(a, b, c), is_rectified ? &dg : nullptr);
        EXPECT_EQ(found.order(), order);
        EXPECT_LT(test::largest_error(found.to_vector(), dx), 1e-6);  // three roundings
        EXPECT_TRUE(test::has_zero_borders(found));
        if (!is_rectified) continue;
        EXPECT_EQ(dg.order(), order);
        EXPECT_EQ(dg.to_vector(), std::vector<float>(g.begin(), g.end()));
        EXPECT_TRUE(test::has_zero_borders(dg));
      }
    }
  }
}

// A network that has diverged says so: a NaN does not vanish behind a ReLU's mask of x ≤ 0.
TEST(ChannelAffineGradient, NaNInTheGradientPassesThrough) {
  const Shape shape{17, 3, 3, 5};
  Tensor dy = Tensor::full(shape, 1.0f);
  dy.mutable_data()[7] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::full(shape, 1.0f);
  for (const Order order : test::kImageOrders) {
    const Tensor ones = x.to(order), passed = bits_of(x, order);
    Tensor dg;
    const std::vector<float> dx =
        channel_affine_gradient(dy.to(order), passed, ones, {{1}, {1}, {1}}, &dg).to_vector();
    EXPECT_TRUE(std::isnan(dx[7]));
    EXPECT_TRUE(std::isnan(dg.to_vector()[7]));
    EXPECT_EQ(dx[6], 1.0f);
    EXPECT_TRUE(
        std::isnan(norm_gradient_sums(dy.to(order), passed, ones, {0, 0, 0}, {1, 1, 1}).g[0]));
  }
}

TEST(NormGradient, IsTheSumsAndTheMapByThemBitForBit) {
  for (const Shape& shape : {Shape{70, 3, 9, 11}, Shape{35, 40, 5, 4}, Shape{16, 32, 1, 1}}) {
    const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
    const Tensor y = test::normal_tensor("y", shape);
    const std::vector<float> mean = by_channel(shape, "mean"), inverse = by_channel(shape, "1/d");
    const auto slopes_of = [&](size_t channel, double g, double gx) {
      return NormSlopes{inverse[channel], static_cast<float>(gx), static_cast<float>(g)};
    };
    for (const Order order : test::kImageOrders) {
      for (const bool is_rectified : {false, true}) {
        SCOPED_TRACE(name_of(shape, order));
        const Tensor passed = is_rectified ? bits_of(y, order) : Tensor();
        const Tensor of_x = test::with_dirty_padding(x, order);
        const Tensor of_dy = test::with_dirty_padding(dy, order);
        const NormGradientSums sums = norm_gradient_sums(of_dy, passed, of_x, mean, inverse);
        std::vector<NormSlopes> by_sums;
        for (size_t c = 0; c < mean.size(); ++c) {
          by_sums.push_back(slopes_of(c, sums.g[c], sums.gx[c]));
        }
        Tensor expected_dg;
        const Tensor expected = channel_affine_gradient(of_dy, passed, of_x, by_sums, &expected_dg);
        const ImageNormGradient found = norm_gradient(
            {.dy = of_dy, .passed = passed, .x = of_x, .needs_g = true}, mean, inverse, slopes_of);
        EXPECT_EQ(found.sums.g, sums.g);
        EXPECT_EQ(found.sums.gx, sums.gx);
        EXPECT_EQ(found.dx.to_vector(), expected.to_vector());
        EXPECT_EQ(found.g.to_vector(), expected_dg.to_vector());
        EXPECT_TRUE(test::has_zero_borders(found.dx));
        EXPECT_TRUE(found.g.shares_storage_with(of_dy) || test::has_zero_borders(found.g));
      }
    }
  }
}

TEST(BatchNormKernels, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const Shape& shape : {Shape{70, 3, 9, 11}, Shape{35, 40, 5, 4}}) {
    const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
    const std::vector<float> a = by_channel(shape, "a"), b = by_channel(shape, "b");
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(name_of(shape, order));
      const Tensor sx = x.to(order), sdy = dy.to(order), passed = bits_of(x, order);
      struct Results {
        std::vector<double> sums[4];
        std::vector<float> arrays[3];
      } results[3];
      for (size_t i = 0; i < 3; ++i) {
        set_num_threads(i == 2 ? 5 : static_cast<int>(i) + 1);
        const ChannelStatistics s = channel_statistics(sx);
        const NormGradientSums g = norm_gradient_sums(sdy, passed, sx, a, b);
        results[i] = {
            {s.mean, s.variance, g.g, g.gx},
            {channel_affine(sx, a, b, sdy, Rectify::Yes).to_vector(),
             channel_affine_gradient(sdy, passed, sx, slopes(a, b, a), nullptr).to_vector(),
             sum_channels(sx).to_vector()}};
      }
      set_num_threads(before);
      for (size_t i = 1; i < 3; ++i) {
        for (size_t k = 0; k < 4; ++k) EXPECT_EQ(results[0].sums[k], results[i].sums[k]);
        for (size_t k = 0; k < 3; ++k) EXPECT_EQ(results[0].arrays[k], results[i].arrays[k]);
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::batch_norm_test
