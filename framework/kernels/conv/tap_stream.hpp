// TapStream: the nonzeros of a convolution's weight in the order in which kernels process them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lacuna/framework/core/array.h"

namespace lacuna {

/// Rows of a tile that have the same number of nonzeros there.
struct TapGroup {
  int64_t rows = 0, length = 0;
  int64_t first_row = 0;    ///< in rows_in_order
  int64_t first_value = 0;  ///< of the first row, in stream order
};

/// Source planes that a pass over the output planes reads, few enough to stay in a cache.
struct TapTile {
  int64_t first_plane = 0;
  int64_t first_group = 0, end_group = 0;
};

/// A sum over source planes, for each of `rows` output planes: entry k adds value k times the lines
/// at `offsets[k]`. Tile after tile of source planes; within one, rows by their number of nonzeros.
struct TapStream {
  int64_t rows = 0, planes = 0, nnz = 0;
  int64_t last_line = 0;  ///< the largest of a tap's
  std::vector<TapTile> tiles;
  std::vector<TapGroup> groups;
  Array<uint32_t> rows_in_order;  ///< two more at the end, for prefetching
  Array<int32_t> offsets;         ///< bytes from the output's place in the tile's first plane
  Array<uint32_t> source;         ///< where the value is among the weight's elements

  int64_t bytes() const;
};

/// One nonzero: output plane, source plane, lines from the output's place, number of the element.
struct Tap {
  int64_t row = 0, plane = 0, line = 0;
  uint32_t element = 0;
};

/// Calls its argument with every nonzero, those of a row in ascending order of planes.
using TapList = std::function<void(const std::function<void(const Tap&)>&)>;

/// *Cost:* two passes over the nonzeros.
TapStream make_tap_stream(const TapList& taps, int64_t rows, int64_t planes, int64_t plane_lines,
                          int64_t tile_planes);

}  // namespace lacuna
