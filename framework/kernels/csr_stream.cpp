// Building streams: see csr.h.
#include <algorithm>
#include <numeric>

#include "lacuna/framework/kernels/csr.h"

namespace lacuna {
namespace {

constexpr int64_t kLongestTile = 1 << 16;  // offsets have 16 bits

// Blocks have about equal numbers of nonzeros, so that threads end together. A block has some work
// (or threads cost more than they gain), some rows (or tiles are loaded for little), and some
// nonzeros in each tile, which costs 48 bytes.
int64_t count_blocks(int64_t rows, int64_t columns, int64_t nnz) {
  constexpr int64_t kNonzeros = 16384, kRows = 512, kNonzerosInTile = 256;
  const int64_t in_block = std::max(kNonzeros, kNonzerosInTile * (columns / kLongestTile));
  return std::clamp<int64_t>(std::min(rows / kRows, nnz / in_block), 1, 1 << 16);
}

// Columns in a tile. A tile of 160 columns of a slab takes 40 KiB of the first-level cache; a
// longer one is read from the second level, at about 8 cycles a nonzero instead of 5, but saves the
// loading and storing of each output row once a tile (about 14 cycles). Where a block's rows use
// less than each column once, no cache has it for them: the longest tile.
int64_t choose_tile(int64_t columns, int64_t rows, int64_t nnz) {
  constexpr double kNear = 5.0, kFar = 8.0, kSegment = 14.0;
  const double density =
      rows == 0 || columns == 0
          ? 0.0
          : static_cast<double>(nnz) / static_cast<double>(rows) / static_cast<double>(columns);
  const auto cost = [&](int64_t tile, double per_nonzero) {
    const double in_tile = density * static_cast<double>(tile);
    const double segments = std::min(1.0, in_tile) / static_cast<double>(tile);  // by column
    return per_nonzero * density + kSegment * segments;
  };
  const int64_t near_tile = density > 0.15 ? 128 : 160;
  if (columns <= near_tile) return std::max<int64_t>(columns, 1);
  const int64_t far_tile = std::min(columns, kLongestTile);
  const bool is_reused = nnz / count_blocks(rows, columns, nnz) >= columns;
  if (is_reused && cost(near_tile, kNear) <= cost(far_tile, kFar)) {
    const int64_t tiles = (columns + near_tile - 1) / near_tile;
    return (columns + tiles - 1) / tiles;
  }
  return far_tile;
}

// Ends of the blocks.
std::vector<int64_t> cut_rows(int64_t rows, int64_t blocks, std::span<const int64_t> row_begin) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  std::vector<int64_t> ends;
  for (int64_t b = 1; b < blocks; ++b) {
    const int64_t want = row_begin.front() + nnz * b / blocks;
    const int64_t row = std::ranges::lower_bound(row_begin, want) - row_begin.begin();
    if (row > (ends.empty() ? 0 : ends.back()) && row < rows) ends.push_back(row);
  }
  ends.push_back(rows);
  return ends;
}

// Fills a stream block by block, tile by tile. A block's row segments are first sorted by tile, so
// that rows without a nonzero in a tile cost nothing there: of a wide matrix these are nearly all.
class Builder {
 public:
  Builder(CsrStream& stream, std::span<const int64_t> row_begin, std::span<const uint32_t> columns)
      : stream_(stream),
        row_begin_(row_begin),
        columns_(columns),
        tiles_(std::max<int64_t>((stream.columns + stream.tile_columns - 1) / stream.tile_columns,
                                 1)) {}

  void add_block(int64_t first, int64_t end) {
    CsrBlock block{.first_row = first,
                   .end_row = end,
                   .first_tile = static_cast<int64_t>(stream_.tiles.size())};
    sort_segments(first, end);
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const auto t = static_cast<size_t>(tile);
      add_tile(tile * stream_.tile_columns,
               std::span(segments_).subspan(tile_begin_[t], tile_begin_[t + 1] - tile_begin_[t]));
    }
    block.end_tile = static_cast<int64_t>(stream_.tiles.size());
    stream_.blocks.push_back(block);
  }

 private:
  // The nonzeros of a row in one tile.
  struct Segment {
    uint32_t row = 0;
    uint32_t length = 0;
    int64_t first = 0;  // in columns_
  };

  // Calls `visit(tile, segment)` for each segment of a row; the first tile has one of every row.
  template <class Visit>
  void for_each_segment(int64_t row, const Visit& visit) const {
    int64_t i = row_begin_[static_cast<size_t>(row)];
    const int64_t end = row_begin_[static_cast<size_t>(row) + 1];
    int64_t tile = 0;
    while (true) {
      const auto end_column = static_cast<uint64_t>((tile + 1) * stream_.tile_columns);
      const int64_t first = i;
      while (i < end && columns_[static_cast<size_t>(i)] < end_column) ++i;
      visit(static_cast<size_t>(tile), Segment{.row = static_cast<uint32_t>(row),
                                               .length = static_cast<uint32_t>(i - first),
                                               .first = first});
      if (i == end) return;
      tile = columns_[static_cast<size_t>(i)] / stream_.tile_columns;
    }
  }

  // A counting sort by tile: rows ascend within each.
  void sort_segments(int64_t first, int64_t end) {
    tile_begin_.assign(static_cast<size_t>(tiles_) + 2, 0);
    for (int64_t row = first; row < end; ++row) {
      for_each_segment(row, [&](size_t tile, const Segment&) { ++tile_begin_[tile + 2]; });
    }
    std::partial_sum(tile_begin_.begin(), tile_begin_.end(), tile_begin_.begin());
    segments_.resize(tile_begin_.back());
    for (int64_t row = first; row < end; ++row) {
      for_each_segment(row, [&](size_t tile, const Segment& segment) {
        segments_[tile_begin_[tile + 1]++] = segment;
      });
    }
  }

  void add_tile(int64_t first_column, std::span<const Segment> segments) {
    if (segments.empty() && first_column > 0) return;
    count_.assign(1, 0);
    for (const Segment& segment : segments) {
      if (segment.length >= count_.size()) count_.resize(segment.length + 1);
      ++count_[segment.length];
    }
    CsrTile tile{.first_column = first_column,
                 .first_group = static_cast<int64_t>(stream_.groups.size())};
    const size_t first_entry = stream_.rows_in_order.size();
    add_groups();
    tile.end_group = static_cast<int64_t>(stream_.groups.size());
    stream_.rows_in_order.resize(first_entry + segments.size());
    for (const Segment& segment : segments) {
      const auto entry = static_cast<size_t>(count_[segment.length]++);  // now the next one's place
      stream_.rows_in_order[first_entry + entry] = segment.row;
      const int64_t value = value_at_[segment.length];
      value_at_[segment.length] += static_cast<int64_t>(segment.length);
      for (size_t k = 0; k < segment.length; ++k) {
        stream_.offsets[static_cast<size_t>(value) + k] = static_cast<uint16_t>(
            columns_[static_cast<size_t>(segment.first) + k] - static_cast<uint32_t>(first_column));
      }
    }
    stream_.tiles.push_back(tile);
  }

  // Turns the counts by length into the groups, and into the places where their rows begin.
  void add_groups() {
    const auto first_entry = static_cast<int64_t>(stream_.rows_in_order.size());
    int64_t entries = 0;
    value_at_.assign(count_.size(), 0);
    for (size_t length = 0; length < count_.size(); ++length) {
      const int64_t rows = count_[length];
      if (rows > 0) {
        stream_.groups.push_back({.first_row = first_entry + entries,
                                  .first_value = values_,
                                  .rows = static_cast<int32_t>(rows),
                                  .length = static_cast<int32_t>(length)});
      }
      value_at_[length] = values_;
      count_[length] = entries;
      entries += rows;
      values_ += rows * static_cast<int64_t>(length);
    }
  }

  CsrStream& stream_;
  std::span<const int64_t> row_begin_;
  std::span<const uint32_t> columns_;
  int64_t tiles_;
  std::vector<Segment> segments_;   // of the present block, by tile
  std::vector<size_t> tile_begin_;  // by tile: its first segment
  std::vector<int64_t> count_;      // by length: rows, then the next row's place
  std::vector<int64_t> value_at_;   // by length: the next row's first value
  int64_t values_ = 0;
};

CsrStream build(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                std::span<const uint32_t> column_of, int64_t tile_columns, int64_t blocks) {
  CsrStream stream{.rows = rows, .columns = columns, .nnz = row_begin.back() - row_begin.front()};
  stream.tile_columns = tile_columns;
  stream.offsets.resize(static_cast<size_t>(stream.nnz) + 4);
  stream.rows_in_order.reserve(static_cast<size_t>(rows));
  Builder builder(stream, row_begin, column_of);
  int64_t first = 0;
  for (const int64_t end : cut_rows(rows, blocks, row_begin)) {
    builder.add_block(first, end);
    first = end;
  }
  const uint32_t last = stream.rows_in_order.empty() ? 0 : stream.rows_in_order.back();
  stream.rows_in_order.insert(stream.rows_in_order.end(), 8, last);
  stream.rows_in_order.shrink_to_fit();
  stream.groups.shrink_to_fit();
  stream.tiles.shrink_to_fit();
  return stream;
}

}  // namespace

int64_t CsrStream::bytes() const {
  const auto of = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
  return of(blocks) + of(tiles) + of(groups) + of(rows_in_order) + of(offsets);
}

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  return build(rows, columns, row_begin, column_of, choose_tile(columns, rows, nnz),
               count_blocks(rows, columns, nnz));
}

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of, const CsrCut& cut) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  const int64_t most = std::min(rows / cut.rows_in_block, nnz / cut.nonzeros_in_block);
  return build(rows, columns, row_begin, column_of, cut.tile_columns,
               std::clamp<int64_t>(most, 1, 1 << 16));
}

std::vector<uint32_t> csr_canonical_places(const CsrStream& stream,
                                           std::span<const int64_t> row_begin) {
  std::vector<uint32_t> places(static_cast<size_t>(stream.nnz));
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t value, int64_t, int64_t length) {
    int64_t& place = next[static_cast<size_t>(row)];
    for (int64_t k = 0; k < length; ++k) {
      places[static_cast<size_t>(value + k)] = static_cast<uint32_t>(place++);
    }
  });
  return places;
}

}  // namespace lacuna
