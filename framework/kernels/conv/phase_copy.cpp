#include "lacuna/framework/kernels/conv/phase_copy.hpp"

#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/image_slabs.hpp"

namespace lacuna {
namespace {

// Pixels of a phase that lie in an image.
int64_t pixels_of(int64_t size, int64_t first, int64_t stride) {
  return first >= size ? 0 : (size - first - 1) / stride + 1;
}

const float* line(const float* slab, const Planes& planes, int64_t plane, int64_t row) {
  return slab + (planes.lead_lines + plane * planes.plane_lines + row * planes.row_lines) *
                    kImageSlabWidth;
}
float* line(float* slab, const Planes& planes, int64_t plane, int64_t row) {
  return const_cast<float*>(line(static_cast<const float*>(slab), planes, plane, row));
}

}  // namespace

void split_phases(const Planes& image, int64_t channels, Extent stride,
                  std::span<const PixelPhase> phases, const Planes& into, const float* slab,
                  float* planes, const float* border) {
  const auto count = static_cast<int64_t>(phases.size());
  const int64_t lines = into.slab_lines(channels * count);
  if (border == nullptr) {
    std::memset(planes, 0, static_cast<size_t>(lines * kImageLineBytes));
  } else {
    for (int64_t i = 0; i < lines; ++i) {
      std::memcpy(planes + i * kImageSlabWidth, border, kImageLineBytes);
    }
  }
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t p = 0; p < count; ++p) {
      const PixelPhase& phase = phases[static_cast<size_t>(p)];
      const int64_t rows = pixels_of(image.height, phase.row, stride.height);
      const int64_t columns = pixels_of(image.width, phase.column, stride.width);
      for (int64_t row = 0; row < rows; ++row) {
        const float* from = line(slab, image, channel, phase.row + row * stride.height) +
                            phase.column * kImageSlabWidth;
        float* to = line(planes, into, channel * count + p, row);
        for (int64_t column = 0; column < columns; ++column) {
          std::memcpy(to + column * kImageSlabWidth, from + column * stride.width * kImageSlabWidth,
                      kImageLineBytes);
        }
      }
    }
  }
}

void join_phases(const Planes& image, int64_t channels, Extent stride,
                 std::span<const PixelPhase> phases, const Planes& from, const float* planes,
                 float* slab) {
  const auto count = static_cast<int64_t>(phases.size());
  const bool is_whole = count == stride.height * stride.width;
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t row = 0; row < image.height && !is_whole; ++row) {
      std::memset(line(slab, image, channel, row), 0,
                  static_cast<size_t>(image.width * kImageLineBytes));
    }
    for (int64_t p = 0; p < count; ++p) {
      const PixelPhase& phase = phases[static_cast<size_t>(p)];
      const int64_t rows = pixels_of(image.height, phase.row, stride.height);
      const int64_t columns = pixels_of(image.width, phase.column, stride.width);
      for (int64_t row = 0; row < rows; ++row) {
        const float* source = line(planes, from, channel * count + p, row);
        float* to = line(slab, image, channel, phase.row + row * stride.height) +
                    phase.column * kImageSlabWidth;
        for (int64_t column = 0; column < columns; ++column) {
          std::memcpy(to + column * stride.width * kImageSlabWidth,
                      source + column * kImageSlabWidth, kImageLineBytes);
        }
      }
    }
  }
}

}  // namespace lacuna
