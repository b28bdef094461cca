// Random positions that come in tiles, for measuring layouts that store such.
#pragma once

#include <cstdint>

#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

/// Tiles of rows × columns; of every m tiles side by side n exist where n < m, else each with
/// probability `density`. *Requires* a shape that the tiles, and m, divide.
struct TileSample {
  int64_t rows = 1, columns = 1;
  int64_t n = 1, m = 1;
};
Positions sample_tiles(const Shape& shape, const TileSample& tiles, double density);

}  // namespace lacuna
