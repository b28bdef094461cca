#include "lacuna/sparsity/calibration/unfold.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace {

constexpr int64_t kPlaces = 4096;  // unfolded at a time

// One place's window: [channels, kernel height, kernel width].
void unfold_place(const float* planes, const ConvolutionShape& s, int64_t channels, int64_t place,
                  float* row) {
  const Window& w = s.window;
  const int64_t width = s.output().width, height = s.image.height;
  const int64_t top = place / width * w.stride.height - w.padding.height;
  const int64_t left = place % width * w.stride.width - w.padding.width;
  for (int64_t c = 0; c < channels; ++c) {
    const float* plane = planes + c * height * s.image.width;
    for (int64_t ky = 0; ky < w.kernel.height; ++ky) {
      const int64_t y = top + ky * w.dilation.height;
      const bool has_row = y >= 0 && y < height;
      for (int64_t kx = 0; kx < w.kernel.width; ++kx) {
        const int64_t x = left + kx * w.dilation.width;
        const bool is_inside = has_row && x >= 0 && x < s.image.width;
        *row++ = is_inside ? plane[y * s.image.width + x] : 0.0f;
      }
    }
  }
}

}  // namespace

void add_unfolded(const Tensor& images, const ConvolutionShape& shape, int64_t group,
                  InputGram& gram) {
  const int64_t channels = shape.in_channels / shape.groups;
  const int64_t pixels = shape.image.height * shape.image.width;
  const int64_t places = shape.output().height * shape.output().width;
  const int64_t features = channels * shape.taps();
  std::vector<float> rows(static_cast<size_t>(std::min(places, kPlaces) * features));
  for (int64_t image = 0; image < shape.batch; ++image) {
    const float* planes = images.data() + (image * shape.in_channels + group * channels) * pixels;
    for (int64_t first = 0; first < places; first += kPlaces) {
      const int64_t count = std::min(kPlaces, places - first);
      parallel_for(count, 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          unfold_place(planes, shape, channels, first + i, rows.data() + i * features);
        }
      });
      gram.add(std::span<const float>(rows.data(), static_cast<size_t>(count * features)));
    }
  }
}

}  // namespace lacuna
