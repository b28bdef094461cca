#include "lacuna/framework/layouts/formats/block_index.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

BlockStream stream_of(const PatternShape& cell, const Positions& positions) {
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(positions.count() / cell.unit_size()));
  for (int64_t row = 0; row < positions.rows(); row += cell.unit_rows()) {
    const std::span<const uint32_t> all = positions.row(row);
    for (size_t i = 0; i < all.size(); i += static_cast<size_t>(cell.unit_columns())) {
      columns.push_back(all[i] / static_cast<uint32_t>(cell.unit_columns()));
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return block_stream(cell, positions.rows() / cell.unit_rows(),
                      positions.columns() / cell.unit_columns(), begin, columns);
}

// The stream of the transposed weight: a counting sort by the columns' cell.
BlockStream transposed_stream_of(const PatternShape& cell, const Positions& positions) {
  const auto size = static_cast<size_t>(cell.unit_rows());
  const auto for_each_cell = [&](const auto& visit) {
    for (int64_t row = 0; row < positions.rows(); ++row) {
      const std::span<const uint32_t> all = positions.row(row);
      for (size_t i = 0; i < all.size(); i += size)
        visit(all[i] / size, static_cast<uint32_t>(row));
    }
  };
  std::vector<int64_t> begin(static_cast<size_t>(positions.columns()) / size + 2);
  for_each_cell([&](size_t cell_row, uint32_t) { ++begin[cell_row + 2]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<uint32_t> columns(static_cast<size_t>(begin.back()));
  for_each_cell([&](size_t cell_row, uint32_t row) {
    columns[static_cast<size_t>(begin[cell_row + 1]++)] = row;
  });
  begin.pop_back();
  return block_stream(cell, positions.columns() / cell.unit_rows(), positions.rows(), begin,
                      columns);
}

}  // namespace

std::optional<CellForm> choose_cells(const PatternShape& pattern) {
  const auto longest = [](int64_t side) { return PatternShape::block(side % 8 == 0 ? 8 : 4, 1); };
  const bool by_rows = pattern.unit_rows() % 4 == 0, by_columns = pattern.unit_columns() % 4 == 0;
  if (by_rows && by_columns) return CellForm{.cell = PatternShape::block(4, 4)};
  if (by_rows) return CellForm{.cell = longest(pattern.unit_rows())};
  if (by_columns) return CellForm{.cell = longest(pattern.unit_columns()), .is_transposed = true};
  return std::nullopt;
}

BlockIndex::BlockIndex(const Shape& shape, const CellForm& form, const Positions& positions)
    : shape_(shape),
      is_transposed(form.is_transposed),
      stream(form.is_transposed ? transposed_stream_of(form.cell, positions)
                                : stream_of(form.cell, positions)) {}

BlockIndex::BlockIndex(const Shape& shape, BlockStream cells, BitMask mask)
    : shape_(shape), mask_(std::move(mask)), is_transposed(false), stream(std::move(cells)) {}

int64_t BlockIndex::bytes() const {
  const int64_t bits = mask_ ? static_cast<int64_t>(mask_->words().size_bytes()) : 0;
  return stream.bytes() + by_columns_.bytes() + bits;
}

void BlockIndex::take(std::span<const float> dense, std::span<float> values) const {
  const int64_t rows = stream.cell.unit_rows(), columns = stream.cell.unit_columns(),
                width = stream.columns();
  csr_for_each_segment(stream.cells, [&](int64_t row, int64_t first, int64_t tile, int64_t length) {
    const float* from = dense.data() + row * rows * width;
    float* into = values.data() + first * rows * columns;
    for (int64_t k = first; k < first + length; ++k) {
      const int64_t column = (tile + stream.cells.offsets[static_cast<size_t>(k)]) * columns;
      for (int64_t c = column; c < column + columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) *into++ = from[r * width + c];
      }
    }
  });
}

const BlockTransposed& BlockIndex::by_columns() const {
  std::call_once(once_, [&] { by_columns_ = block_transposed(stream); });
  return by_columns_;
}

// The cells, ascending by row of cells and column. In the stream, the segments of a row of cells
// are ordered by tile, with those of other rows between them.
std::vector<BlockIndex::Cell> BlockIndex::cells_by_rows() const {
  const CsrStream& cells = stream.cells;
  std::vector<int64_t> next(static_cast<size_t>(cells.rows) + 1);
  csr_for_each_segment(cells, [&](int64_t row, int64_t, int64_t, int64_t length) {
    next[static_cast<size_t>(row) + 1] += length;
  });
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Cell> sorted(static_cast<size_t>(cells.nnz));
  csr_for_each_segment(cells, [&](int64_t row, int64_t first, int64_t tile, int64_t length) {
    for (int64_t k = first; k < first + length; ++k) {
      sorted[static_cast<size_t>(next[static_cast<size_t>(row)]++)] = {
          .row = row, .column = tile + cells.offsets[static_cast<size_t>(k)], .place = k};
    }
  });
  return sorted;
}

// The place of the first element of each row of the weight.
std::vector<int64_t> BlockIndex::row_begins(const std::vector<Cell>& cells) const {
  const PatternShape& shape = stream.cell;
  std::vector<int64_t> begin(static_cast<size_t>(is_transposed ? stream.columns() : stream.rows()) +
                             1);
  for (const Cell& cell : cells) {
    if (is_transposed) {
      begin[static_cast<size_t>(cell.column) + 1] += shape.unit_rows();
    } else {
      for (int64_t r = 1; r <= shape.unit_rows(); ++r) {
        begin[static_cast<size_t>(cell.row * shape.unit_rows() + r)] += shape.unit_columns();
      }
    }
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  return begin;
}

std::vector<uint32_t> BlockIndex::elements() const {
  const PatternShape& shape = stream.cell;
  const std::vector<Cell> cells = cells_by_rows();
  std::vector<int64_t> next = row_begins(cells);  // the next element of each row of the weight
  std::vector<uint32_t> element(static_cast<size_t>(stream.nnz()));
  for (const Cell& cell : cells) {
    uint32_t* of_cell = element.data() + cell.place * shape.unit_size();
    if (is_transposed) {
      for (int64_t k = 0; k < shape.unit_rows(); ++k) {
        of_cell[k] = static_cast<uint32_t>(next[static_cast<size_t>(cell.column)]++);
      }
      continue;
    }
    for (int64_t r = 0; r < shape.unit_rows(); ++r) {
      int64_t& in_row = next[static_cast<size_t>(cell.row * shape.unit_rows() + r)];
      for (int64_t c = 0; c < shape.unit_columns(); ++c) {
        of_cell[c * shape.unit_rows() + r] = static_cast<uint32_t>(in_row++);
      }
    }
  }
  return element;
}

Positions BlockIndex::positions() const {
  const PatternShape& shape = stream.cell;
  const std::vector<Cell> cells = cells_by_rows();
  const std::vector<uint32_t> element = elements();
  std::vector<uint32_t> columns(element.size());
  for (const Cell& cell : cells) {
    for (int64_t k = 0; k < shape.unit_size(); ++k) {
      const int64_t column = is_transposed
                                 ? cell.row * shape.unit_rows() + k
                                 : cell.column * shape.unit_columns() + k / shape.unit_rows();
      columns[element[static_cast<size_t>(cell.place * shape.unit_size() + k)]] =
          static_cast<uint32_t>(column);
    }
  }
  return Positions(shape_, row_begins(cells), std::move(columns));
}

void refuse_shape(const PatternShape& pattern, const Shape& shape, const std::string& why) {
  throw ShapeError("layout " + pattern.to_string() + " cannot store shape " + shape.to_string() +
                   ": " + why);
}

void require_tile_sides(const PatternShape& pattern, const Shape& shape) {
  const auto require = [&](int64_t size, int64_t unit, const char* what) {
    if (size % unit == 0) return;
    refuse_shape(pattern, shape, fmt::format("{} {} are not divisible by {}", size, what, unit));
  };
  require(matrix_rows(shape), pattern.divisors()[0], "rows");
  require(matrix_columns(shape), pattern.divisors()[1], "columns");
}

void refuse_tile_row(const PatternShape& pattern, const Shape& shape, int64_t row, int64_t first) {
  refuse_shape(pattern, shape,
               fmt::format("row {} must have the positions of row {}, with which it shares tiles",
                           row, first));
}

void require_tiles(const PatternShape& pattern, const Shape& shape, const Positions& positions) {
  require_tile_sides(pattern, shape);
  if (positions.count() >= kMostInTiles || positions.rows() >= kMostInTiles) {
    refuse_shape(pattern, shape,
                 fmt::format("it has {} nonzeros; the limit for nonzeros and rows is 2^31 - 1",
                             positions.count()));
  }
  for (int64_t row = 0; row < positions.rows(); ++row) {
    const int64_t first = row - row % pattern.unit_rows();
    if (row == first) {
      require_row_of_tiles(pattern, shape, row, positions.row(row));
    } else if (!std::ranges::equal(positions.row(row), positions.row(first))) {
      refuse_tile_row(pattern, shape, row, first);
    }
  }
}

void require_row_of_tiles(const PatternShape& pattern, const Shape& shape, int64_t row,
                          std::span<const uint32_t> columns) {
  const auto width = static_cast<size_t>(pattern.unit_columns());
  for (size_t i = 0; i < columns.size(); i += width) {
    const bool is_whole = columns[i] % width == 0 && i + width <= columns.size() &&
                          columns[i + width - 1] == columns[i] + width - 1;
    if (!is_whole) {
      refuse_shape(pattern, shape,
                   fmt::format("row {} covers only a part of the tile at column {}", row,
                               columns[i] / width * width));
    }
  }
  const auto n = static_cast<size_t>(pattern.n()), m = static_cast<size_t>(pattern.m());
  if (n == m) return;
  for (size_t i = 0; i + n < columns.size(); ++i) {
    if (columns[i] / m == columns[i + n] / m) {
      refuse_shape(pattern, shape,
                   fmt::format("row {} has more than {} positions in the {} columns from {} on",
                               row, n, m, columns[i] / m * m));
    }
  }
}

}  // namespace lacuna
