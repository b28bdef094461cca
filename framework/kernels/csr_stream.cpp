// Building streams: see csr.h.
#include <algorithm>

#include "lacuna/framework/kernels/csr.h"

namespace lacuna {
namespace {

// Columns in a tile. A tile of 160 columns of a slab takes 40 KiB of the first-level cache; a
// longer one is read from the second level, at about 8 cycles a nonzero instead of 5, but saves the
// loading and storing of each output row once a tile (about 14 cycles).
int64_t choose_tile(int64_t columns, double nonzeros_per_row) {
  constexpr int64_t kLongest = 1 << 16;  // offsets have 16 bits
  constexpr double kNear = 5.0, kFar = 8.0, kSegment = 14.0;
  const double density = columns == 0 ? 0.0 : nonzeros_per_row / static_cast<double>(columns);
  const auto cost = [&](int64_t tile, double per_nonzero) {
    const double in_tile = density * static_cast<double>(tile);
    const double segments = std::min(1.0, in_tile) / static_cast<double>(tile);  // by column
    return per_nonzero * density + kSegment * segments;
  };
  const int64_t near_tile = density > 0.15 ? 128 : 160;
  if (columns <= near_tile) return std::max<int64_t>(columns, 1);
  const int64_t far_tile = std::min(columns, kLongest);
  if (cost(near_tile, kNear) <= cost(far_tile, kFar)) {
    const int64_t tiles = (columns + near_tile - 1) / near_tile;
    return (columns + tiles - 1) / tiles;
  }
  return far_tile;
}

// Ends of the blocks: about equal numbers of nonzeros, so that threads end together. A block has
// some work (or threads cost more than they gain) and some rows (or tiles are loaded for little).
std::vector<int64_t> cut_rows(int64_t rows, std::span<const int64_t> row_begin) {
  constexpr int64_t kNonzeros = 16384, kRows = 512;
  const int64_t nnz = row_begin.back() - row_begin.front();
  const int64_t blocks = std::clamp<int64_t>(std::min(rows / kRows, nnz / kNonzeros), 1, 1 << 16);
  std::vector<int64_t> ends;
  for (int64_t b = 1; b < blocks; ++b) {
    const int64_t want = row_begin.front() + nnz * b / blocks;
    const int64_t row = std::ranges::lower_bound(row_begin, want) - row_begin.begin();
    if (row > (ends.empty() ? 0 : ends.back()) && row < rows) ends.push_back(row);
  }
  ends.push_back(rows);
  return ends;
}

// Fills a stream block by block, tile by tile.
class Builder {
 public:
  Builder(CsrStream& stream, std::span<const int64_t> row_begin, std::span<const uint32_t> columns)
      : stream_(stream),
        columns_(columns),
        next_(row_begin.begin(), row_begin.end() - 1),
        end_(row_begin.subspan(1)),
        length_(static_cast<size_t>(stream.rows)) {}

  void add_block(int64_t first, int64_t end) {
    CsrBlock block{.first_row = first,
                   .end_row = end,
                   .first_tile = static_cast<int64_t>(stream_.tiles.size())};
    int64_t column = 0;
    do {
      add_tile(first, end, column);
      column += stream_.tile_columns;
    } while (column < stream_.columns);
    block.end_tile = static_cast<int64_t>(stream_.tiles.size());
    stream_.blocks.push_back(block);
  }

 private:
  void add_tile(int64_t first, int64_t end, int64_t first_column) {
    const bool is_first = first_column == 0;
    const auto end_column =
        static_cast<uint64_t>(std::min(first_column + stream_.tile_columns, stream_.columns));
    count_.assign(1, 0);
    for (int64_t row = first; row < end; ++row) {
      const auto r = static_cast<size_t>(row);
      int64_t i = next_[r];
      while (i < end_[r] && columns_[static_cast<size_t>(i)] < end_column) ++i;
      const auto length = static_cast<size_t>(i - next_[r]);
      length_[r] = static_cast<uint32_t>(length);
      if (length >= count_.size()) count_.resize(length + 1);
      ++count_[length];
    }
    CsrTile tile{.first_column = first_column,
                 .first_group = static_cast<int64_t>(stream_.groups.size())};
    const size_t first_entry = stream_.rows_in_order.size();
    add_groups(is_first);
    tile.end_group = static_cast<int64_t>(stream_.groups.size());
    if (tile.first_group == tile.end_group && !is_first) return;
    stream_.rows_in_order.resize(first_entry + static_cast<size_t>(entries_));
    for (int64_t row = first; row < end; ++row) {
      const auto r = static_cast<size_t>(row);
      const size_t length = length_[r];
      if (length == 0 && !is_first) continue;
      const auto entry = static_cast<size_t>(count_[length]++);  // now the next entry's place
      stream_.rows_in_order[first_entry + entry] = static_cast<uint32_t>(row);
      const int64_t value = value_at_[length];
      value_at_[length] += static_cast<int64_t>(length);
      for (size_t k = 0; k < length; ++k) {
        stream_.offsets[static_cast<size_t>(value) + k] = static_cast<uint16_t>(
            columns_[static_cast<size_t>(next_[r]) + k] - static_cast<uint32_t>(first_column));
      }
      next_[r] += static_cast<int64_t>(length);
    }
    stream_.tiles.push_back(tile);
  }

  // Turns the counts by length into the groups, and into the places where their rows begin.
  void add_groups(bool with_empty_rows) {
    const auto first_entry = static_cast<int64_t>(stream_.rows_in_order.size());
    entries_ = 0;
    value_at_.assign(count_.size(), 0);
    for (size_t length = with_empty_rows ? 0 : 1; length < count_.size(); ++length) {
      const int64_t rows = count_[length];
      if (rows > 0) {
        stream_.groups.push_back({.first_row = first_entry + entries_,
                                  .first_value = values_,
                                  .rows = static_cast<int32_t>(rows),
                                  .length = static_cast<int32_t>(length)});
      }
      value_at_[length] = values_;
      count_[length] = entries_;
      entries_ += rows;
      values_ += rows * static_cast<int64_t>(length);
    }
  }

  CsrStream& stream_;
  std::span<const uint32_t> columns_;
  std::vector<int64_t> next_;  // by row: the first nonzero that is not yet in a tile
  std::span<const int64_t> end_;
  std::vector<uint32_t> length_;   // by row, in the present tile
  std::vector<int64_t> count_;     // by length: rows, then the next row's place
  std::vector<int64_t> value_at_;  // by length: the next row's first value
  int64_t values_ = 0;
  int64_t entries_ = 0;
};

}  // namespace

int64_t CsrStream::bytes() const {
  const auto of = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
  return of(blocks) + of(tiles) + of(groups) + of(rows_in_order) + of(offsets);
}

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of) {
  CsrStream stream{.rows = rows, .columns = columns, .nnz = row_begin.back() - row_begin.front()};
  stream.tile_columns = choose_tile(
      columns, rows == 0 ? 0.0 : static_cast<double>(stream.nnz) / static_cast<double>(rows));
  stream.offsets.resize(static_cast<size_t>(stream.nnz) + 4);
  stream.rows_in_order.reserve(static_cast<size_t>(rows));
  Builder builder(stream, row_begin, column_of);
  int64_t first = 0;
  for (const int64_t end : cut_rows(rows, row_begin)) {
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
