// Operations on images as they are defined, element by element in row-major order, in complex
// numbers that derivatives by complex step go through.
#pragma once

#include <vector>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna::test {

/// `visit(output's place in its plane, pixel's place in its plane, tap)` of every tap of a window
/// that lies on the image.
template <class Visit>
void for_each_pixel_under(const Window& window, const Extent& image, const Visit& visit) {
  const Extent out = window.output(image, "definition");
  for (int64_t i = 0; i < out.height * out.width; ++i) {
    for (int64_t tap = 0; tap < window.kernel.height * window.kernel.width; ++tap) {
      const int64_t row = i / out.width * window.stride.height - window.padding.height +
                          tap / window.kernel.width * window.dilation.height;
      const int64_t column = i % out.width * window.stride.width - window.padding.width +
                             tap % window.kernel.width * window.dilation.width;
      if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
      visit(i, row * image.width + column, tap);
    }
  }
}

/// y[n, o] = b[o] + Σ_c w[o, c] ∗ x[n, c]; the channels of a group see those of the same group.
inline ComplexArray conv2d_definition(const ConvolutionShape& s, const ComplexArray& x,
                                      const ComplexArray& w, const ComplexArray& bias) {
  const Extent out = s.output();
  const int64_t places = out.height * out.width, pixels = s.image.height * s.image.width;
  const int64_t of_group = s.in_channels / s.groups, rows_of_group = s.out_channels / s.groups;
  ComplexArray y(static_cast<size_t>(s.batch * s.out_channels * places));
  for (int64_t plane = 0; plane < s.batch * s.out_channels; ++plane) {
    const int64_t example = plane / s.out_channels, o = plane % s.out_channels;
    Complex* to = &y[static_cast<size_t>(plane * places)];
    for (int64_t i = 0; i < places && !bias.empty(); ++i) to[i] = bias[static_cast<size_t>(o)];
    for (int64_t c = 0; c < of_group; ++c) {
      const int64_t channel = o / rows_of_group * of_group + c;
      const Complex* from = &x[static_cast<size_t>((example * s.in_channels + channel) * pixels)];
      const Complex* taps = &w[static_cast<size_t>((o * of_group + c) * s.taps())];
      for_each_pixel_under(s.window, s.image, [&](int64_t i, int64_t pixel, int64_t tap) {
        to[i] += taps[tap] * from[pixel];
      });
    }
  }
  return y;
}

/// The parts of [batch, channels, rest] in which a channel's values lie, and their moments.
struct ChannelDefinition {
  int64_t batch = 0, channels = 0, rest = 1;

  explicit ChannelDefinition(const Shape& shape)
      : batch(shape[0]), channels(shape[1]), rest(shape.numel() / (shape[0] * shape[1])) {}

  template <class Visit>
  void for_each(int64_t channel, const Visit& visit) const {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t i = 0; i < rest; ++i) {
        visit(static_cast<size_t>((n * channels + channel) * rest + i));
      }
    }
  }
  Complex mean(const ComplexArray& x, int64_t channel) const {
    Complex sum = 0.0;
    for_each(channel, [&](size_t i) { sum += x[i]; });
    return sum / static_cast<double>(batch * rest);
  }
  /// Of the population.
  Complex variance(const ComplexArray& x, int64_t channel) const {
    const Complex middle = mean(x, channel);
    Complex sum = 0.0;
    for_each(channel, [&](size_t i) { sum += (x[i] - middle) * (x[i] - middle); });
    return sum / static_cast<double>(batch * rest);
  }
};

/// y = (x − mean) / √(variance + eps) · weight + bias with the batch's moments; an empty weight is
/// 1 and an empty bias 0.
inline ComplexArray batch_norm_definition(const Shape& shape, double eps, const ComplexArray& x,
                                          const ComplexArray& weight, const ComplexArray& bias) {
  const ChannelDefinition of(shape);
  ComplexArray y(x.size());
  for (int64_t c = 0; c < of.channels; ++c) {
    const auto at = static_cast<size_t>(c);
    const Complex mean = of.mean(x, c), deviation = std::sqrt(of.variance(x, c) + eps);
    const Complex w = weight.empty() ? Complex(1.0) : weight[at];
    const Complex b = bias.empty() ? Complex(0.0) : bias[at];
    of.for_each(c, [&](size_t i) { y[i] = (x[i] - mean) / deviation * w + b; });
  }
  return y;
}

inline ComplexArray sum_definition(const ComplexArray& a, const ComplexArray& b) {
  ComplexArray y = a;
  for (size_t i = 0; i < y.size(); ++i) y[i] += b[i];
  return y;
}

inline ComplexArray relu_definition(const ComplexArray& x) {
  ComplexArray y = x;
  for (Complex& value : y) value = value.real() > 0.0 ? value : Complex(0.0);
  return y;
}

/// Every order that images of one batch can be in.
inline const std::vector<Order>& image_orders() {
  static const std::vector<Order> all = {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs,
                                         Order::ChannelBlocks};
  return all;
}

}  // namespace lacuna::test
