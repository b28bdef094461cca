// The stream of a transposed matrix, from the stream of the matrix.
#include <algorithm>
#include <numeric>
#include <utility>

#include "lacuna/framework/kernels/csr/csr_stream.hpp"

namespace lacuna {
namespace {

using internal::Arrangement;
using internal::Segment;

// Transposes with a table of the nonzeros of each column in each tile of the transposed stream; the
// table then becomes that of their places. While a tile of `from` is processed, the written places
// belong to its columns and one tile's rows, so they stay in the first-level cache.
class Transposition {
 public:
  explicit Transposition(const CsrStream& from)
      : from_(from),
        width_(internal::choose_tile(from.rows, from.columns, from.nnz)),
        tiles_(std::max<int64_t>((from.rows + width_ - 1) / width_, 1)) {}

  // Whether the table, and all rows of each tile, are small compared with the nonzeros.
  bool is_worth_it() const {
    const int64_t tiles_of_columns = internal::count_tiles(from_);
    return (tiles_ == 1 || tiles_ * from_.columns <= from_.nnz) &&
           (tiles_of_columns == 1 || tiles_of_columns * from_.rows <= from_.nnz);
  }

  CsrTransposed run() && {
    count();
    into_.stream = internal::sized_stream(from_.columns, from_.rows, from_.nnz, width_);
    arrange();
    into_.source.resize(static_cast<size_t>(from_.nnz));
    for (const CsrBlock& block : from_.blocks) {
      for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
        fill(block, from_.tiles[static_cast<size_t>(t)]);
      }
    }
    internal::pair_rows(into_.stream, into_.source);
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
    const int64_t blocks = internal::count_blocks(from_.columns, from_.rows, from_.nnz);
    for (const int64_t end : internal::cut_rows(from_.columns, blocks, column_begins())) {
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

  // Writes the nonzeros of one tile, whose rows ascend.
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

  // A separate function, because in the large one the compiler keeps the counters in memory.
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
  Array<uint32_t> table_;  // [tiles, columns]: counts, then next places
  std::vector<Row> rows_;  // of a block in one tile
};

// A counting sort of all nonzeros by column: time and memory depend only on their number.
CsrTransposed transposed_by_sorting(const CsrStream& from) {
  const std::vector<int64_t> row_begin = csr_row_begins(from);
  std::vector<int64_t> column_begin(static_cast<size_t>(from.columns) + 1);
  // For each element in row-major order: its value's place in the stream, and its column.
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
