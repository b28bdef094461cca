#include "lacuna/framework/layouts/tile_sample.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

// The tiles of one row of tiles.
std::vector<int64_t> choose_tiles(const CounterRng& rng, uint64_t row, int64_t count,
                                  const TileSample& tiles, double density) {
  std::vector<int64_t> chosen;
  const uint64_t base = row * static_cast<uint64_t>(count);
  if (tiles.n >= tiles.m) {
    for (int64_t t = 0; t < count; ++t) {
      const float drawn = rng.uniform(base + static_cast<uint64_t>(t));
      if (static_cast<double>(drawn) < density) chosen.push_back(t);
    }
    return chosen;
  }
  for (int64_t group = 0; group < count; group += tiles.m) {
    int64_t left = tiles.n;  // selection sampling
    for (int64_t t = group; t < group + tiles.m && left > 0; ++t) {
      const auto draw =
          rng.below(base + static_cast<uint64_t>(t), static_cast<uint64_t>(group + tiles.m - t));
      if (static_cast<int64_t>(draw) >= left) continue;
      chosen.push_back(t);
      --left;
    }
  }
  return chosen;
}

}  // namespace

Positions sample_tiles(const Shape& shape, const TileSample& tiles, double density) {
  const CounterRng rng(0, "tile sample");
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  std::vector<int64_t> chosen;
  for (int64_t r = 0; r < matrix_rows(shape); ++r) {
    if (r % tiles.rows == 0) {
      chosen = choose_tiles(rng, static_cast<uint64_t>(r / tiles.rows),
                            matrix_columns(shape) / tiles.columns, tiles, density);
    }
    for (const int64_t tile : chosen) {
      for (int64_t c = 0; c < tiles.columns; ++c) {
        columns.push_back(static_cast<uint32_t>(tile * tiles.columns + c));
      }
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(shape, std::move(begin), std::move(columns));
}

}  // namespace lacuna
