// A convolution's products from their definition, as sums in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::test {

/// y without bias, dx, and the gradient of the weight, row-major.
struct ConvolutionSums {
  std::vector<double> y, dx, dw;
};

/// *Shapes:* row-major x, weight and dy of the convolution's shapes.
inline ConvolutionSums convolution_sums(const ConvolutionShape& s, const Tensor& x,
                                        const Tensor& weight, const Tensor& dy) {
  ConvolutionSums sums{std::vector<double>(static_cast<size_t>(dy.numel())),
                       std::vector<double>(static_cast<size_t>(x.numel())),
                       std::vector<double>(static_cast<size_t>(weight.numel()))};
  const Window& w = s.window;
  const Extent out = s.output();
  const int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
  const float *x_at = x.data(), *weight_at = weight.data(), *dy_at = dy.data();
  size_t to = 0;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t place = 0; place < out.height * out.width; ++place, ++to) {
        const int64_t top = place / out.width * w.stride.height - w.padding.height;
        const int64_t left = place % out.width * w.stride.width - w.padding.width;
        for (int64_t i = 0; i < in_group; ++i) {
          const int64_t plane = n * s.in_channels + o / out_group * in_group + i;
          for (int64_t tap = 0; tap < s.taps(); ++tap) {
            const int64_t row = top + tap / w.kernel.width * w.dilation.height;
            const int64_t column = left + tap % w.kernel.width * w.dilation.width;
            if (row < 0 || row >= s.image.height || column < 0 || column >= s.image.width) continue;
            const auto from =
                static_cast<size_t>((plane * s.image.height + row) * s.image.width + column);
            const auto at = static_cast<size_t>((o * in_group + i) * s.taps() + tap);
            const double value = weight_at[at], g = dy_at[to], input = x_at[from];
            sums.y[to] += value * input;
            sums.dx[from] += value * g;
            sums.dw[at] += g * input;
          }
        }
      }
    }
  }
  return sums;
}

/// Adds bias[channel] to y.
inline void add_bias(const ConvolutionShape& s, const std::vector<float>& bias,
                     std::vector<double>& y) {
  const int64_t pixels = s.output().height * s.output().width;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += bias[static_cast<size_t>(static_cast<int64_t>(i) / pixels % s.out_channels)];
  }
}

/// Largest |a − b| over the largest |b|.
inline double error_of_largest(const std::vector<float>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0.0, error = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(a[i] - b[i]);
    if (!(distance >= 0.0)) return INFINITY;
    error = std::max(error, distance);
    largest = std::max(largest, std::abs(b[i]));
  }
  return error == 0.0 ? 0.0 : error / largest;
}

inline std::string name_of(const ConvolutionShape& s) {
  return s.input_shape().to_string() + " * " + s.weight_shape().to_string() + " groups " +
         std::to_string(s.groups) + " stride " + s.window.stride.to_string() + " padding " +
         s.window.padding.to_string() + " dilation " + s.window.dilation.to_string();
}

}  // namespace lacuna::test
