// The loops of sparse convolutions in plain C++, for checking the rest: see gather.hpp.
#pragma once

#include <algorithm>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/conv/gather.hpp"

namespace lacuna::reference {

/// `visit(row, stream index, floats from an output's place in the first plane)` of each nonzero.
template <class Visit>
void for_each_tap(const TapStream& stream, const PixelRun& run, const Visit& visit) {
  for (const TapTile& tile : stream.tiles) {
    const int64_t plane = tile.first_plane * run.from_plane_lines * kImageSlabWidth;
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const TapGroup& group = stream.groups[static_cast<size_t>(g)];
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = stream.rows_in_order[static_cast<size_t>(group.first_row + i)];
        for (int64_t k = 0; k < group.length; ++k) {
          const int64_t value = group.first_value + i * group.length + k;
          const int64_t offset = stream.offsets[static_cast<size_t>(value)];
          visit(row, value, plane + offset / static_cast<int64_t>(sizeof(float)));
        }
      }
    }
  }
}

/// `visit(row, column)` of each output pixel.
template <class Visit>
void for_each_pixel(const PixelRun& run, const Visit& visit) {
  for (int64_t row = run.begin; row < run.end; ++row) {
    for (int64_t column = 0; column < run.width; ++column) visit(row, column);
  }
}

inline void gather_pixels(const TapStream& stream, const float* values, const float* from,
                          float* to, const float* bias, const PixelRun& run) {
  const auto out = [&](int64_t plane, int64_t row, int64_t column) {
    return to +
           (run.to_plane(plane) + row * run.to_row_lines + column * run.to_step) * kImageSlabWidth;
  };
  for (int64_t plane = 0; plane < stream.rows; ++plane) {
    for_each_pixel(run, [&](int64_t row, int64_t column) {
      std::fill_n(out(plane, row, column), kImageSlabWidth, bias == nullptr ? 0.0f : bias[plane]);
    });
    for (int64_t row = run.begin; run.ends_rows && row < run.end; ++row) {
      std::fill_n(out(plane, row, run.width), kImageSlabWidth, 0.0f);
    }
  }
  for_each_tap(stream, run, [&](int64_t plane, int64_t value, int64_t offset) {
    for_each_pixel(run, [&](int64_t row, int64_t column) {
      const float* in =
          from + offset + (row * run.from_row_lines + column * run.from_step) * kImageSlabWidth;
      float* into = out(plane, row, column);
      for (int64_t i = 0; i < kImageSlabWidth; ++i) into[i] += values[value] * in[i];
    });
  });
}

inline void tap_gradient(const TapStream& stream, const float* x, const float* dy, float* gradient,
                         const PixelRun& run, float* lanes) {
  for (int64_t plane = 0; lanes != nullptr && plane < stream.rows; ++plane) {
    for_each_pixel(run, [&](int64_t row, int64_t column) {
      const float* line =
          dy + (run.to_plane(plane) + row * run.to_row_lines + column) * kImageSlabWidth;
      for (int64_t i = 0; i < kImageSlabWidth; ++i) lanes[plane * kImageSlabWidth + i] += line[i];
    });
  }
  for_each_tap(stream, run, [&](int64_t plane, int64_t value, int64_t offset) {
    double sum = 0.0;
    for_each_pixel(run, [&](int64_t row, int64_t column) {
      const float* in =
          x + offset + (row * run.from_row_lines + column * run.from_step) * kImageSlabWidth;
      const float* out =
          dy + (run.to_plane(plane) + row * run.to_row_lines + column) * kImageSlabWidth;
      for (int64_t i = 0; i < kImageSlabWidth; ++i) sum += static_cast<double>(out[i]) * in[i];
    });
    gradient[value] += static_cast<float>(sum);
  });
}

}  // namespace lacuna::reference
