// Dense 1×1 convolutions on image slabs against sums in double.
#include "lacuna/framework/kernels/conv/channel_products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna::channel_products_test {
namespace {

std::vector<ConvolutionShape> shapes() {
  std::vector<ConvolutionShape> all;
  for (const Extent stride : {Extent{1, 1}, Extent{2, 2}, Extent{1, 2}, Extent{2, 1}}) {
    const Window window{{1, 1}, stride};
    all.push_back({16, 8, 12, 1, {8, 8}, window});
    all.push_back({17, 5, 3, 1, {7, 9}, window});
    all.push_back({3, 1, 9, 1, {10, 3}, window});
    all.push_back({40, 33, 6, 1, {2, 14}, window});
    all.push_back({2, 3, 4, 1, {40, 40}, window});  // several parts of an image
    all.push_back({1, 2, 1, 1, {1, 1}, window});
  }
  return all;
}

std::string text_of(const ConvolutionShape& s) {
  return s.input_shape().to_string() + " to " + std::to_string(s.out_channels) +
         " channels, stride " + s.window.stride.to_string();
}

/// A convolution and what its products should be.
struct Case {
  explicit Case(const ConvolutionShape& s)
      : weight(test::normal_values("weight", s.out_channels * s.in_channels)),
        bias(test::normal_values("bias", s.out_channels)),
        x(test::normal_tensor("x", s.input_shape())),
        dy(test::normal_tensor("dy", s.output_shape())),
        dx_sums(static_cast<size_t>(x.numel())),
        dw_sums(weight.size()) {
    const Extent out = s.output(), stride = s.window.stride;
    const float *x_at = x.data(), *dy_at = dy.data();
    for (int64_t i = 0; i < dy.numel(); ++i) {
      const int64_t column = i % out.width, row = i / out.width % out.height;
      const int64_t o = i / (out.width * out.height) % s.out_channels;
      const int64_t example = i / (out.width * out.height * s.out_channels);
      double sum = bias[static_cast<size_t>(o)];
      for (int64_t c = 0; c < s.in_channels; ++c) {
        const int64_t from =
            ((example * s.in_channels + c) * s.image.height + row * stride.height) * s.image.width +
            column * stride.width;
        const auto element = static_cast<size_t>(o * s.in_channels + c);
        sum += static_cast<double>(weight[element]) * x_at[from];
        dx_sums[static_cast<size_t>(from)] += static_cast<double>(weight[element]) * dy_at[i];
        dw_sums[element] += static_cast<double>(dy_at[i]) * x_at[from];
      }
      y_sums.push_back(sum);
    }
  }

  std::vector<float> weight, bias;
  Tensor x, dy;
  std::vector<double> y_sums, dx_sums, dw_sums;
};

// Where the last slab lacks examples, their lanes are nobody's.
int64_t wrong_borders(const Tensor& images) {
  Tensor cleared = images.clone();
  cleared.clear_padding();
  const ImageSlabs slabs(images.shape());
  int64_t wrong = 0;
  for (size_t i = 0; i < images.storage().size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t first = at / kImageSlabWidth / slabs.slab_lines() * kImageSlabWidth;
    const bool is_example = at % kImageSlabWidth < slabs.batch - first;
    wrong += is_example && images.storage()[i] != cleared.storage()[i];
  }
  return wrong;
}

TEST(ChannelProducts, AreTheSumsOfTheDefinition) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    const Case c(s);
    const Tensor x = c.x.to(Order::ImageSlabs), dy = c.dy.to(Order::ImageSlabs);
    const Tensor y = channel_products(s, c.weight.data(), x, c.bias.data());
    EXPECT_EQ(y.order(), Order::ImageSlabs);
    EXPECT_LT(test::largest_error(y.to_vector(), c.y_sums), 3e-5);
    const Tensor dx = channel_input_gradient(s, c.weight.data(), dy);
    EXPECT_EQ(dx.order(), Order::ImageSlabs);
    EXPECT_LT(test::largest_error(dx.to_vector(), c.dx_sums), 3e-5);
    std::vector<float> gradient(c.weight.size(), 1.0f);
    channel_weight_gradient(s, dy, x, Accumulate::No, gradient);
    EXPECT_LT(test::largest_error(gradient, c.dw_sums), 3e-5);
    std::vector<double> twice(gradient.begin(), gradient.end());
    for (double& value : twice) value *= 2.0;
    channel_weight_gradient(s, dy, x, Accumulate::Yes, gradient);
    EXPECT_LT(test::largest_error(gradient, twice), 3e-5);
  }
}

TEST(ChannelProducts, ResultsHaveZeroBorders) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    const Case c(s);
    EXPECT_EQ(wrong_borders(
                  channel_products(s, c.weight.data(), c.x.to(Order::ImageSlabs), c.bias.data())),
              0);
    EXPECT_EQ(wrong_borders(channel_input_gradient(s, c.weight.data(), c.dy.to(Order::ImageSlabs))),
              0);
  }
}

TEST(ChannelProducts, BitsDoNotDependOnTheNumberOfThreads) {
  const ConvolutionShape s{70, 8, 9, 1, {20, 20}, {{1, 1}, {2, 2}}};
  const Case c(s);
  Tensor x = c.x.to(Order::ImageSlabs), dy = c.dy.to(Order::ImageSlabs);
  const int threads = num_threads();
  std::vector<std::vector<float>> results[2];
  for (const int count : {1, 2}) {
    set_num_threads(count);
    std::vector<float> gradient(c.weight.size());
    channel_weight_gradient(s, dy, x, Accumulate::No, gradient);
    results[count - 1] = {channel_products(s, c.weight.data(), x, nullptr).to_vector(),
                          channel_input_gradient(s, c.weight.data(), dy).to_vector(), gradient};
  }
  set_num_threads(threads);
  EXPECT_EQ(results[0], results[1]);
}

TEST(ChannelProducts, NoExamplesGiveAZeroGradient) {
  const ConvolutionShape s{0, 3, 2, 1, {4, 4}, {{1, 1}}};
  const Tensor x = Tensor::zeros(s.input_shape(), Order::ImageSlabs),
               dy = Tensor::zeros(s.output_shape(), Order::ImageSlabs);
  std::vector<float> gradient(6, 1.0f);
  channel_weight_gradient(s, dy, x, Accumulate::No, gradient);
  EXPECT_EQ(gradient, std::vector<float>(6, 0.0f));
}

TEST(ChannelProducts, AreForSinglePixelsWithoutPadding) {
  EXPECT_EQ(has_channel_products({2, 3, 4, 1, {8, 8}, {{1, 1}, {2, 2}}}), !use_reference_kernels());
  EXPECT_FALSE(has_channel_products({2, 3, 4, 1, {8, 8}, {{3, 3}, {1, 1}, {1, 1}}}));
  EXPECT_FALSE(has_channel_products({2, 3, 4, 1, {8, 8}, {{1, 1}, {1, 1}, {1, 1}}}));
  EXPECT_FALSE(has_channel_products({2, 3, 4, 1, {9, 9}, {{1, 1}, {3, 3}}}));
  EXPECT_FALSE(has_channel_products({2, 4, 4, 2, {8, 8}, {{1, 1}}}));
}

}  // namespace
}  // namespace lacuna::channel_products_test
