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
std::vector<int64_t> cut_rows(int64_t rows, int64_t columns, std::span<const int64_t> row_begin) {
  const int64_t nnz = row_begin.back() - row_begin.front();
  const int64_t blocks = count_blocks(rows, columns, nnz);
  std::vector<int64_t> ends;
  for (int64_t b = 1; b < blocks; ++b) {
    const int64_t want = row_begin.front() + nnz * b / blocks;
    const int64_t row = std::ranges::lower_bound(row_begin, want) - row_begin.begin();
    if (row > (ends.empty() ? 0 : ends.back()) && row < rows) ends.push_back(row);
  }
  ends.push_back(rows);
  return ends;
}

// The nonzeros of a row in one tile.
struct Segment {
  uint32_t row = 0;
  uint32_t length = 0;
  int64_t first = 0;  // where who made it finds them
};

// Gives the segments of a stream their places, block by block, tile by tile.
class Arrangement {
 public:
  explicit Arrangement(CsrStream& stream) : stream_(stream) {}

  void begin_block(int64_t first, int64_t end) {
    stream_.blocks.push_back({.first_row = first,
                              .end_row = end,
                              .first_tile = static_cast<int64_t>(stream_.tiles.size())});
  }
  void end_block() { stream_.blocks.back().end_tile = static_cast<int64_t>(stream_.tiles.size()); }

  // A tile of the block from its segments, rows ascending: calls `visit(segment, first value)` for
  // each. The first tile of a block has a segment of every row.
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
      const auto entry = static_cast<size_t>(count_[segment.length]++);  // now the next one's place
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
  std::vector<int64_t> count_;     // by length: rows, then the next row's place
  std::vector<int64_t> value_at_;  // by length: the next row's first value
  int64_t values_ = 0;
};

int64_t count_tiles(const CsrStream& stream) {
  return std::max<int64_t>((stream.columns + stream.tile_columns - 1) / stream.tile_columns, 1);
}

// Fills a stream from rows of columns. A block's row segments are first sorted by tile, so that
// rows without a nonzero in a tile cost nothing there: of a wide matrix these are nearly all.
class Builder {
 public:
  Builder(CsrStream& stream, std::span<const int64_t> row_begin, std::span<const uint32_t> columns)
      : stream_(stream),
        arrangement_(stream),
        row_begin_(row_begin),
        columns_(columns),
        tiles_(count_tiles(stream)) {}

  void add_block(int64_t first, int64_t end) {
    arrangement_.begin_block(first, end);
    cut_block(first, end);
    const std::span<const Segment> segments = sort_by_tile();
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const auto t = static_cast<size_t>(tile);
      add_tile(tile * stream_.tile_columns,
               segments.subspan(tile_begin_[t], tile_begin_[t + 1] - tile_begin_[t]));
    }
    arrangement_.end_block();
  }
  void end_stream() { arrangement_.end_stream(); }

 private:
  // The block's segments, row by row, and how many each tile has (two places on in tile_begin_);
  // the first tile has one of every row.
  void cut_block(int64_t first, int64_t end) {
    segments_.clear();
    tile_of_.clear();
    tile_begin_.assign(static_cast<size_t>(tiles_) + 2, 0);
    const auto width = static_cast<uint64_t>(stream_.tile_columns);
    for (int64_t row = first; row < end; ++row) {
      int64_t i = row_begin_[static_cast<size_t>(row)];
      const int64_t row_end = row_begin_[static_cast<size_t>(row) + 1];
      uint64_t tile = 0;
      do {
        const uint64_t end_column = (tile + 1) * width;
        const int64_t begin = i;
        while (i < row_end && columns_[static_cast<size_t>(i)] < end_column) ++i;
        segments_.push_back({.row = static_cast<uint32_t>(row),
                             .length = static_cast<uint32_t>(i - begin),
                             .first = begin});
        tile_of_.push_back(static_cast<uint32_t>(tile));
        ++tile_begin_[tile + 2];
        if (i < row_end) tile = columns_[static_cast<size_t>(i)] / width;
      } while (i < row_end);
    }
  }

  // A counting sort: rows ascend within each tile.
  std::span<const Segment> sort_by_tile() {
    std::partial_sum(tile_begin_.begin(), tile_begin_.end(), tile_begin_.begin());
    if (tiles_ == 1) {
      tile_begin_[1] = segments_.size();
      return segments_;
    }
    sorted_.resize(segments_.size());
    for (size_t i = 0; i < segments_.size(); ++i) {
      sorted_[tile_begin_[tile_of_[i] + 1]++] = segments_[i];
    }
    return sorted_;
  }

  void add_tile(int64_t first_column, std::span<const Segment> segments) {
    arrangement_.add_tile(first_column, segments, [&](const Segment& segment, int64_t value) {
      const uint32_t* columns = columns_.data() + segment.first;
      uint16_t* offsets = stream_.offsets.data() + value;
      for (uint32_t k = 0; k < segment.length; ++k) {
        offsets[k] = static_cast<uint16_t>(columns[k] - static_cast<uint32_t>(first_column));
      }
    });
  }

  CsrStream& stream_;
  Arrangement arrangement_;
  std::span<const int64_t> row_begin_;
  std::span<const uint32_t> columns_;
  int64_t tiles_;
  std::vector<Segment> segments_, sorted_;  // of the present block: by row, by tile
  std::vector<uint32_t> tile_of_;           // of segments_
  std::vector<size_t> tile_begin_;          // by tile: its first segment
};

}  // namespace

int64_t CsrStream::bytes() const {
  const auto of = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
  return of(blocks) + of(tiles) + of(groups) + of(rows_in_order) + of(offsets);
}

namespace {

// With room for the offsets, but nothing in it.
CsrStream sized_stream(int64_t rows, int64_t columns, int64_t nnz) {
  CsrStream stream{.rows = rows, .columns = columns, .nnz = nnz};
  stream.tile_columns = choose_tile(columns, rows, nnz);
  stream.offsets.resize(static_cast<size_t>(nnz) + 4);
  std::fill_n(stream.offsets.end() - 4, 4, uint16_t{0});
  stream.rows_in_order.reserve(static_cast<size_t>(rows));
  return stream;
}

}  // namespace

CsrStream csr_stream(int64_t rows, int64_t columns, std::span<const int64_t> row_begin,
                     std::span<const uint32_t> column_of) {
  CsrStream stream = sized_stream(rows, columns, row_begin.back() - row_begin.front());
  Builder builder(stream, row_begin, column_of);
  int64_t first = 0;
  for (const int64_t end : cut_rows(rows, columns, row_begin)) {
    builder.add_block(first, end);
    first = end;
  }
  builder.end_stream();
  return stream;
}

Array<uint32_t> csr_canonical_places(const CsrStream& stream, std::span<const int64_t> row_begin) {
  Array<uint32_t> places(static_cast<size_t>(stream.nnz));
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t value, int64_t, int64_t length) {
    int64_t& place = next[static_cast<size_t>(row)];
    for (int64_t k = 0; k < length; ++k) {
      places[static_cast<size_t>(value + k)] = static_cast<uint32_t>(place++);
    }
  });
  return places;
}

std::vector<int64_t> csr_row_begins(const CsrStream& stream) {
  std::vector<int64_t> begin(static_cast<size_t>(stream.rows) + 1);
  csr_for_each_segment(stream, [&](int64_t row, int64_t, int64_t, int64_t length) {
    begin[static_cast<size_t>(row) + 1] += length;
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  return begin;
}

namespace {

// Transposes by a table of the nonzeros of each column in each tile of the transposed stream, which
// becomes that of their places. Where a tile of `from` is worked on, the places that are written
// belong to its columns and a tile's rows: they stay in the first-level cache.
class Transposition {
 public:
  explicit Transposition(const CsrStream& from)
      : from_(from),
        into_{.stream = sized_stream(from.columns, from.rows, from.nnz),
              .source = Array<uint32_t>(static_cast<size_t>(from.nnz))},
        width_(into_.stream.tile_columns),
        tiles_(count_tiles(into_.stream)) {}

  // Whether the table, and all rows of each tile, are few beside the nonzeros.
  bool is_worth_it() const {
    return (tiles_ == 1 || tiles_ * from_.columns <= from_.nnz) &&
           (count_tiles(from_) == 1 || count_tiles(from_) * from_.rows <= from_.nnz);
  }

  CsrTransposed run() && {
    count();
    arrange();
    for (const CsrBlock& block : from_.blocks) {
      for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
        fill(block, from_.tiles[static_cast<size_t>(t)]);
      }
    }
    return std::move(into_);
  }

 private:
  void count() {
    table_.assign(static_cast<size_t>(tiles_ * from_.columns), 0);
    csr_for_each_segment(from_, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
      count_offsets({from_.offsets.data() + value, static_cast<size_t>(length)},
                    table_.data() + row / width_ * from_.columns + first);
    });
  }

  std::vector<int64_t> column_begins() const {
    std::vector<int64_t> begin(static_cast<size_t>(from_.columns) + 1);
    for (size_t i = 0; i < table_.size();) {
      for (size_t c = 1; c < begin.size(); ++c) begin[c] += table_[i++];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    return begin;
  }

  void arrange() {
    Arrangement arrangement(into_.stream);
    std::vector<Segment> segments;
    int64_t first = 0;
    for (const int64_t end : cut_rows(from_.columns, from_.rows, column_begins())) {
      arrangement.begin_block(first, end);
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        segments.clear();
        for (int64_t column = first; column < end; ++column) {
          const int64_t at = tile * from_.columns + column;
          const uint32_t length = table_[static_cast<size_t>(at)];
          if (length == 0 && tile > 0) continue;
          segments.push_back({.row = static_cast<uint32_t>(column), .length = length, .first = at});
        }
        arrangement.add_tile(tile * width_, segments, [&](const Segment& segment, int64_t value) {
          table_[static_cast<size_t>(segment.first)] = static_cast<uint32_t>(value);
        });
      }
      arrangement.end_block();
      first = end;
    }
    arrangement.end_stream();
  }

  // The nonzeros of one tile, its rows ascending.
  void fill(const CsrBlock& block, const CsrTile& tile) {
    const auto rows = static_cast<size_t>(block.end_row - block.first_row);
    rows_.assign(rows, {});
    csr_for_each_segment(from_, tile, [&](int64_t row, int64_t value, int64_t, int64_t length) {
      rows_[static_cast<size_t>(row - block.first_row)] = {static_cast<uint32_t>(value),
                                                           static_cast<uint32_t>(length)};
    });
    for (size_t r = 0; r < rows; ++r) {
      const int64_t row = block.first_row + static_cast<int64_t>(r), in_tile = row / width_;
      uint32_t* next = table_.data() + in_tile * from_.columns + tile.first_column;
      const auto [value, length] = rows_[r];
      scatter_row({from_.offsets.data() + value, length}, value,
                  static_cast<uint16_t>(row - in_tile * width_), next);
    }
  }

  // Loops of their own: among so much else the compiler keeps their counters in memory.
  [[gnu::noinline]] static void count_offsets(std::span<const uint16_t> offsets, uint32_t* counts) {
    for (const uint16_t offset : offsets) ++counts[offset];
  }
  [[gnu::noinline]] void scatter_row(std::span<const uint16_t> columns, uint32_t value,
                                     uint16_t row, uint32_t* next) {
    uint16_t* offsets = into_.stream.offsets.data();
    uint32_t* source = into_.source.data();
    for (const uint16_t column : columns) {
      const uint32_t place = next[column]++;
      offsets[place] = row;
      source[place] = value++;
    }
  }

  struct Row {
    uint32_t value = 0, length = 0;
  };

  const CsrStream& from_;
  CsrTransposed into_;
  int64_t width_, tiles_;  // of the transposed stream
  Array<uint32_t> table_;  // [tiles, columns]: nonzeros, then the next one's place
  std::vector<Row> rows_;  // of a block in one tile
};

// By a counting sort of all nonzeros by column: in time and memory of their number alone.
CsrTransposed transposed_by_sorting(const CsrStream& from) {
  const std::vector<int64_t> row_begin = csr_row_begins(from);
  std::vector<int64_t> column_begin(static_cast<size_t>(from.columns) + 1);
  // By element in row-major order: its value's place in the stream, and its column.
  Array<uint32_t> value_of(static_cast<size_t>(from.nnz)), column_of(value_of.size());
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  csr_for_each_segment(from, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
    int64_t& place = next[static_cast<size_t>(row)];
    for (int64_t v = value; v < value + length; ++v, ++place) {
      const int64_t column = first + from.offsets[static_cast<size_t>(v)];
      value_of[static_cast<size_t>(place)] = static_cast<uint32_t>(v);
      column_of[static_cast<size_t>(place)] = static_cast<uint32_t>(column);
      ++column_begin[static_cast<size_t>(column) + 1];
    }
  });
  std::partial_sum(column_begin.begin(), column_begin.end(), column_begin.begin());
  Array<uint32_t> row_of(value_of.size()), source(value_of.size());
  next.assign(column_begin.begin(), column_begin.end() - 1);
  for (int64_t row = 0; row < from.rows; ++row) {
    const auto end = static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1]);
    for (auto i = static_cast<size_t>(row_begin[static_cast<size_t>(row)]); i < end; ++i) {
      const auto place = static_cast<size_t>(next[column_of[i]]++);
      row_of[place] = static_cast<uint32_t>(row);
      source[place] = value_of[i];
    }
  }
  value_of = {};
  column_of = {};
  CsrTransposed into{.stream = csr_stream(from.columns, from.rows, column_begin, row_of),
                     .source = {}};
  row_of = {};
  into.source = csr_canonical_places(into.stream, column_begin);
  for (uint32_t& place : into.source) place = source[place];
  return into;
}

}  // namespace

CsrTransposed csr_transposed(const CsrStream& stream) {
  Transposition transposition(stream);
  if (transposition.is_worth_it()) return std::move(transposition).run();
  return transposed_by_sorting(stream);
}

}  // namespace lacuna
