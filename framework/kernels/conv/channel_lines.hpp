// The loops of dense 1×1 convolutions over rows of pixels: see channel_lines.cpp.
#pragma once

#include <cstdint>

namespace lacuna {

/// Rows of pixels of one slab, and a matrix that is multiplied with the channels of each. Distances
/// are floats.
struct ChannelRun {
  const float* from = nullptr;  ///< the first pixel of the first row in the first plane
  float* to = nullptr;
  int64_t from_plane = 0, to_plane = 0;
  int64_t from_row = 0, to_row = 0;  ///< from a row of pixels to the next
  int from_step = 1, to_step = 1;    ///< lines from a pixel to the next: 1 or 2
  int64_t rows = 0, width = 0;       ///< pixels
  int64_t to_width = 0;              ///< lines of a row of `to`; zeros come behind them
  int64_t inputs = 0, outputs = 0;   ///< planes
  const float* weight = nullptr;
  int64_t weight_output = 0, weight_input = 0;  ///< from an output's weight to the next's
  const float* bias = nullptr;                  ///< or null
};

/// to[o][pixel] = bias[o] + Σ_i weight[o, i] · from[i][pixel]; with steps of 2 in `to`, zeros
/// between the pixels.
void multiply_channels(const ChannelRun& run);

/// Rows of pixels of x and of output gradients in one slab.
struct ChannelGradientRun {
  const float *x = nullptr, *dy = nullptr;
  int64_t x_plane = 0, dy_plane = 0;
  int64_t x_row = 0, dy_row = 0;
  int x_step = 1;
  int64_t rows = 0, width = 0;
  int64_t inputs = 0, outputs = 0;
  float* gradient = nullptr;  ///< [outputs, inputs]
};

/// gradient[o, i] += Σ_pixel dy[o][pixel] · x[i][pixel].
void add_channel_gradient(const ChannelGradientRun& run);

}  // namespace lacuna
