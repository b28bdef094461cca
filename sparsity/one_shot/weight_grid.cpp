#include "lacuna/sparsity/one_shot/weight_grid.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace {

double squares_lost(std::span<const float> row, float scale) {
  double sum = 0.0;
  for (const float w : row) {
    const double lost = static_cast<double>(w) - static_cast<double>(on_grid(w, scale));
    sum += lost * lost;
  }
  return sum;
}

float row_scale(std::span<const float> row, GridClip clip) {
  constexpr int kReaches = 80;
  constexpr float kLeast = 0.2f;
  float largest = 0.0f;
  for (const float w : row) largest = std::max(largest, std::abs(w));
  const float full = largest / kGridSteps;
  if (clip == GridClip::Max || full == 0.0f) return full;
  float best = full;
  double least = squares_lost(row, full);
  for (int i = 1; i < kReaches; ++i) {
    const float reach = 1.0f - (1.0f - kLeast) * static_cast<float>(i) / kReaches;
    const double lost = squares_lost(row, full * reach);
    if (lost >= least) continue;
    least = lost;
    best = full * reach;
  }
  return best;
}

}  // namespace

std::vector<float> grid_scales(const Tensor& weight, GridClip clip) {
  const int64_t rows = weight.shape()[0];
  const std::span<const float> values = weight.storage();
  const size_t columns = rows == 0 ? 0 : values.size() / static_cast<size_t>(rows);
  std::vector<float> scales(static_cast<size_t>(rows));
  parallel_for(rows, 16, [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r) {
      const auto row = static_cast<size_t>(r);
      scales[row] = row_scale(values.subspan(row * columns, columns), clip);
    }
  });
  return scales;
}

int8_t grid_step(float w, float scale) {
  if (scale == 0.0f) return 0;
  constexpr auto kMost = static_cast<float>(kGridSteps);
  return static_cast<int8_t>(std::lrint(std::clamp(w / scale, -kMost, kMost)));
}

}  // namespace lacuna
