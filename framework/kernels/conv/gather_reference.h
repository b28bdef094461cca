// The loops of sparse convolutions in plain C++, for checking the rest: see gather.h.
#pragma once

#include "lacuna/framework/core/image_slabs.h"
#include "lacuna/framework/kernels/conv/gather.h"

namespace lacuna::reference {

/// `visit(row, stream index, floats from an output's place in the first plane)` of each nonzero.
template <class Visit>
void for_each_tap(const TapStream& stream, const LineRun& run, const Visit& visit) {
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

inline void gather_lines(const TapStream& stream, const float* values, const float* from, float* to,
                         const float* bias, const LineRun& run) {
  const auto out = [&](int64_t row, int64_t line) {
    return to + (row * run.to_plane_lines + line) * kImageSlabWidth;
  };
  const auto is_pixel = [&](int64_t line) { return line % run.row_lines < run.width; };
  for (int64_t row = 0; row < stream.rows; ++row) {
    for (int64_t line = run.begin; line < run.end; ++line) {
      const float start = bias == nullptr || !is_pixel(line) ? 0.0f : bias[row];
      for (int64_t i = 0; i < kImageSlabWidth; ++i) out(row, line)[i] = start;
    }
  }
  for_each_tap(stream, run, [&](int64_t row, int64_t value, int64_t offset) {
    for (int64_t line = run.begin; line < run.end; ++line) {
      if (!is_pixel(line)) continue;
      const float* in = from + offset + line * kImageSlabWidth;
      for (int64_t i = 0; i < kImageSlabWidth; ++i) out(row, line)[i] += values[value] * in[i];
    }
  });
}

inline void tap_gradient(const TapStream& stream, const float* x, const float* dy, float* gradient,
                         const LineRun& run) {
  for_each_tap(stream, run, [&](int64_t row, int64_t value, int64_t offset) {
    double sum = 0.0;
    for (int64_t line = run.begin; line < run.end; ++line) {
      const float* in = x + offset + line * kImageSlabWidth;
      const float* out = dy + (row * run.to_plane_lines + line) * kImageSlabWidth;
      for (int64_t i = 0; i < kImageSlabWidth; ++i) sum += static_cast<double>(out[i]) * in[i];
    }
    gradient[value] += static_cast<float>(sum);
  });
}

}  // namespace lacuna::reference
