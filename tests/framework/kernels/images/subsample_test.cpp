// The shortcut without weights, in the orders that it takes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/kernels/images/image_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/pooling.hpp"

namespace lacuna::subsample_test {
namespace {

constexpr Order kOrders[] = {Order::RowMajor, Order::ImageSlabs, Order::ChannelBlocks};

struct Case {
  Extent stride;
  int64_t before = 0, behind = 0;  // channels of zeros
};

std::vector<Case> cases() {
  return {{{2, 2}, 1, 1}, {{1, 1}, 0, 0}, {{1, 1}, 2, 1}, {{3, 2}, 0, 4},
          {{1, 4}, 3, 0}, {{2, 2}, 8, 8}, {{2, 1}, 16, 5}};
}

Shape small_shape(const Shape& large, const Case& c) {
  return {large[0], large[1] + c.before + c.behind,
          (large[2] + c.stride.height - 1) / c.stride.height,
          (large[3] + c.stride.width - 1) / c.stride.width};
}

// Calls `visit(flat index in the large images, in the small ones)` for what is in both.
template <class Visit>
void for_each_kept(const Shape& large, const Case& c, const Visit& visit) {
  const Shape small = small_shape(large, c);
  const int64_t channels = large[1], height = large[2], width = large[3], count = large.numel();
  const int64_t out_channels = small[1], out_height = small[2], out_width = small[3];
  for (int64_t flat = 0; flat < count; ++flat) {
    const int64_t column = flat % width, row = flat / width % height;
    const int64_t channel = flat / (height * width) % channels;
    const int64_t example = flat / (channels * height * width);
    if (row % c.stride.height != 0 || column % c.stride.width != 0) continue;
    const int64_t line = (example * out_channels + channel + c.before) * out_height;
    visit(flat, (line + row / c.stride.height) * out_width + column / c.stride.width);
  }
}

TEST(SubsamplePad, TakesEveryStrideThPixelBetweenChannelsOfZeros) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape);
    const float* x_at = x.data();
    for (const Case& c : cases()) {
      std::vector<float> expected(static_cast<size_t>(small_shape(shape, c).numel()), 0.0f);
      for_each_kept(shape, c, [&](int64_t large, int64_t small) {
        expected[static_cast<size_t>(small)] = x_at[large];
      });
      for (const Order order : kOrders) {
        SCOPED_TRACE(shape.to_string() + " in " + to_string(order));
        const Tensor y = subsample_pad(test::with_dirty_padding(x, order), c.stride,
                                       shape[1] + c.before + c.behind, c.before);
        EXPECT_EQ(y.shape(), small_shape(shape, c));
        EXPECT_EQ(y.order(), order);
        EXPECT_EQ(y.to_vector(), expected);
        EXPECT_TRUE(test::has_zero_borders(y));
      }
    }
  }
}

TEST(SubsamplePad, TheGradientGoesBackToThosePixels) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    for (const Case& c : cases()) {
      const Tensor dy = test::normal_tensor("dy", small_shape(shape, c));
      const float* dy_at = dy.data();
      std::vector<float> expected(static_cast<size_t>(shape.numel()), 0.0f);
      for_each_kept(shape, c, [&](int64_t large, int64_t small) {
        expected[static_cast<size_t>(large)] = dy_at[small];
      });
      for (const Order order : kOrders) {
        SCOPED_TRACE(shape.to_string() + " in " + to_string(order));
        const Tensor dx =
            subsample_pad_gradient(test::with_dirty_padding(dy, order), c.stride, c.before, shape);
        EXPECT_EQ(dx.shape(), shape);
        EXPECT_EQ(dx.order(), order);
        EXPECT_EQ(dx.to_vector(), expected);
        EXPECT_TRUE(test::has_zero_borders(dx));
      }
    }
  }
}

TEST(SubsamplePad, NaNPassesThrough) {
  Tensor x = Tensor::full({17, 1, 4, 4}, 1.0f);
  x.mutable_data()[x.numel() - 6] = std::numeric_limits<float>::quiet_NaN();  // row 2, column 2
  for (const Order order : kOrders) {
    const std::vector<float> y = subsample_pad(x.to(order), {2, 2}, 3, 1).to_vector();
    int64_t nans = 0;
    for (const float value : y) nans += std::isnan(value);
    EXPECT_EQ(nans, 1);
    EXPECT_TRUE(std::isnan(y[y.size() - 5]));
  }
}

TEST(SubsamplePad, NoExamples) {
  for (const Order order : kOrders) {
    const Tensor y = subsample_pad(Tensor::zeros({0, 3, 5, 5}, order), {2, 2}, 6, 1);
    EXPECT_EQ(y.shape(), (Shape{0, 6, 3, 3}));
    EXPECT_EQ(subsample_pad_gradient(y, {2, 2}, 1, {0, 3, 5, 5}).shape(), (Shape{0, 3, 5, 5}));
  }
}

TEST(SubsamplePad, AnyNumberOfThreads) {
  const int before = num_threads();
  const Tensor x = test::normal_tensor("x", {70, 3, 9, 8}).to(Order::ImageSlabs);
  set_num_threads(1);
  const std::vector<float> one = subsample_pad(x, {2, 2}, 6, 1).to_vector();
  set_num_threads(2);
  EXPECT_EQ(subsample_pad(x, {2, 2}, 6, 1).to_vector(), one);
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::subsample_test
