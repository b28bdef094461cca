#include "lacuna/framework/kernels/conv/tap_stream.hpp"

#include <algorithm>
#include <numeric>

#include "lacuna/framework/core/image_slabs.hpp"

namespace lacuna {

int64_t TapStream::bytes() const {
  return static_cast<int64_t>(tiles.size() * sizeof(TapTile) + groups.size() * sizeof(TapGroup) +
                              rows_in_order.size() * sizeof(uint32_t) +
                              offsets.size() * sizeof(int32_t) + source.size() * sizeof(uint32_t));
}

TapStream make_tap_stream(const TapList& taps, int64_t rows, int64_t planes, int64_t plane_lines,
                          int64_t tile_planes) {
  const int64_t tiles = std::max<int64_t>(1, (planes + tile_planes - 1) / tile_planes);
  TapStream stream;
  stream.rows = rows, stream.planes = planes;
  std::vector<int64_t> counts(static_cast<size_t>(tiles * rows));
  const auto cell = [&](const Tap& tap) {
    return static_cast<size_t>(tap.plane / tile_planes * rows + tap.row);
  };
  taps([&](const Tap& tap) {
    ++counts[cell(tap)];
    ++stream.nnz;
    stream.last_line = std::max(stream.last_line, tap.line);
  });
  // Where each row's nonzeros of a tile begin in the stream.
  std::vector<int64_t> next(counts.size());
  std::vector<uint32_t> order(static_cast<size_t>(rows));
  int64_t value = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t* count = counts.data() + tile * rows;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t row) { return count[row]; });
    stream.tiles.push_back({.first_plane = tile * tile_planes,
                            .first_group = static_cast<int64_t>(stream.groups.size())});
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t length = count[order[i]];
      if (i == 0 || stream.groups.back().length != length) {
        stream.groups.push_back({.length = length,
                                 .first_row = static_cast<int64_t>(stream.rows_in_order.size()),
                                 .first_value = value});
      }
      ++stream.groups.back().rows;
      stream.rows_in_order.push_back(order[i]);
      next[static_cast<size_t>(tile * rows) + order[i]] = value;
      value += length;
    }
    stream.tiles.back().end_group = static_cast<int64_t>(stream.groups.size());
  }
  if (rows > 0) {
    const uint32_t last = stream.rows_in_order.back();
    for (int i = 0; i < 2; ++i) stream.rows_in_order.push_back(last);
  }
  stream.offsets.resize(static_cast<size_t>(stream.nnz));
  stream.source.resize(static_cast<size_t>(stream.nnz));
  taps([&](const Tap& tap) {
    const auto at = static_cast<size_t>(next[cell(tap)]++);
    const int64_t lines = tap.plane % tile_planes * plane_lines + tap.line;
    stream.offsets[at] = static_cast<int32_t>(lines * kImageLineBytes);
    stream.source[at] = tap.element;
  });
  return stream;
}

}  // namespace lacuna
