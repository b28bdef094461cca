#include "lacuna/framework/layouts/cost/position_sample.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

// The units of one row of units.
std::vector<int64_t> choose_units(const CounterRng& rng, uint64_t row, int64_t count,
                                  const PatternShape& pattern, double density) {
  std::vector<int64_t> chosen;
  const uint64_t base = row * static_cast<uint64_t>(count);
  if (pattern.n() >= pattern.m()) {
    for (int64_t u = 0; u < count; ++u) {
      const float drawn = rng.uniform(base + static_cast<uint64_t>(u));
      if (static_cast<double>(drawn) < density) chosen.push_back(u);
    }
    return chosen;
  }
  for (int64_t first = 0; first < count; first += pattern.m()) {
    const int64_t end = first + pattern.m();
    int64_t left = pattern.n();  // selection sampling
    for (int64_t u = first; u < end && left > 0; ++u) {
      const auto draw = rng.below(base + static_cast<uint64_t>(u), static_cast<uint64_t>(end - u));
      if (static_cast<int64_t>(draw) >= left) continue;
      chosen.push_back(u);
      --left;
    }
  }
  return chosen;
}

// Tiles of 4 × 4 whose rows are rotated from one to the next.
Positions transposable_sample(const Shape& shape) {
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  for (int64_t r = 0; r < matrix_rows(shape); ++r) {
    for (int64_t tile = 0; tile < matrix_columns(shape); tile += 4) {
      const int64_t a = (r + r / 4 + tile / 4) % 4, b = (a + 1 + tile / 4 % 3) % 4;
      columns.push_back(static_cast<uint32_t>(tile + std::min(a, b)));
      columns.push_back(static_cast<uint32_t>(tile + std::max(a, b)));
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(shape, std::move(begin), std::move(columns));
}

}  // namespace

Positions sample_positions(const PatternShape& pattern, const Shape& shape, double density) {
  if (pattern.is_transposable()) return transposable_sample(shape);
  const CounterRng rng(0, "position sample");
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  std::vector<int64_t> chosen;
  for (int64_t r = 0; r < matrix_rows(shape); ++r) {
    if (r % height == 0) {
      chosen = choose_units(rng, static_cast<uint64_t>(r / height), matrix_columns(shape) / width,
                            pattern, density);
    }
    for (const int64_t unit : chosen) {
      for (int64_t c = 0; c < width; ++c) {
        columns.push_back(static_cast<uint32_t>(unit * width + c));
      }
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(shape, std::move(begin), std::move(columns));
}

}  // namespace lacuna
