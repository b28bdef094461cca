// Shared by building and transposing streams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna::internal {

// Columns in a tile of a matrix.
int64_t choose_tile(int64_t columns, int64_t rows, int64_t nnz);
int64_t count_tiles(const CsrStream& stream);
int64_t count_blocks(int64_t rows, int64_t columns, int64_t nnz);
// The ends of at most this number of blocks of rows.
std::vector<int64_t> cut_rows(int64_t rows, int64_t blocks, std::span<const int64_t> row_begin);
// An empty stream with room for the offsets.
CsrStream sized_stream(int64_t rows, int64_t columns, int64_t nnz, int64_t tile_columns);

// Whether the gradient processes full slabs in pairs if a tile is no longer than this and rows have
// many nonzeros in it.
bool gradient_takes_two_slabs();
int64_t two_slabs_tile();
// Number of a row's nonzeros in a tile from which on two slabs and pairs of rows are faster.
inline constexpr int64_t kManyNonzeros = 20;
// Whether rows have this number on average.
bool has_many_nonzeros(const CsrStream& stream);

// Pairs rows (CsrGroup::shared) if that is faster. *Requires* ascending columns in each row.
// `along`: empty, or an array in stream order whose elements move with the nonzeros. *Cost:* a few
// passes over the nonzeros, and up to 64 comparisons of rows per row.
void pair_rows(CsrStream& stream, std::span<uint32_t> along);
// The same, without the test whether it is faster. Groups that already are pairs stay.
void pair_all_rows(CsrStream& stream, std::span<uint32_t> along);

// The nonzeros of a row in one tile.
struct Segment {
  uint32_t row = 0;
  uint32_t length = 0;
  int64_t first = 0;  // a place that the caller chooses
};

// Assigns places to the segments of a stream, block by block, tile by tile.
class Arrangement {
 public:
  explicit Arrangement(CsrStream& stream) : stream_(stream) {}

  void begin_block(int64_t first, int64_t end) {
    stream_.blocks.push_back({.first_row = first,
                              .end_row = end,
                              .first_tile = static_cast<int64_t>(stream_.tiles.size())});
  }
  void end_block() { stream_.blocks.back().end_tile = static_cast<int64_t>(stream_.tiles.size()); }

  // Arranges a tile of the block from its segments, with ascending rows: calls `visit(segment,
  // first value)` for each. The first tile of a block has a segment of every row.
  template <class Visit>
  void add_tile(int64_t first_column, std::span<const Segment> segments, const Visit& visit) {
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
    stream_.tiles.push_back(tile);
    stream_.rows_in_order.resize(first_entry + segments.size());
    for (const Segment& segment : segments) {
      const auto entry = static_cast<size_t>(count_[segment.length]++);  // the next row's place
      stream_.rows_in_order[first_entry + entry] = segment.row;
      visit(segment, value_at_[segment.length]);
      value_at_[segment.length] += static_cast<int64_t>(segment.length);
    }
  }

  void end_stream() {
    const uint32_t last = stream_.rows_in_order.empty() ? 0 : stream_.rows_in_order.back();
    stream_.rows_in_order.insert(stream_.rows_in_order.end(), 8, last);
    stream_.rows_in_order.shrink_to_fit();
    stream_.groups.shrink_to_fit();
    stream_.tiles.shrink_to_fit();
  }

 private:
  // Converts the counts by length to groups, and to the places where their rows begin.
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
  std::vector<int64_t> count_;     // by length: rows, then the next row's place
  std::vector<int64_t> value_at_;  // by length: the next row's first value
  int64_t values_ = 0;
};

}  // namespace lacuna::internal
