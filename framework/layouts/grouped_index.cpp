#include "lacuna/framework/layouts/grouped_index.h"

#include <numeric>
#include <utility>

namespace lacuna {
namespace {

GroupedStream stream_of(const CellShape& cell, const Positions& positions) {
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(positions.count() / cell.size()));
  for (int64_t row = 0; row < positions.rows(); row += cell.rows) {
    const std::span<const uint32_t> all = positions.row(row);
    for (size_t i = 0; i < all.size(); i += static_cast<size_t>(cell.columns)) {
      columns.push_back(all[i] / static_cast<uint32_t>(cell.columns));
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return grouped_stream(cell, positions.rows() / cell.rows, positions.columns() / cell.columns,
                        begin, columns);
}

// Of the transposed weight: a counting sort by the columns' cell.
GroupedStream transposed_stream_of(const CellShape& cell, const Positions& positions) {
  const auto size = static_cast<size_t>(cell.rows);
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
  return grouped_stream(cell, positions.columns() / cell.rows, positions.rows(), begin, columns);
}

}  // namespace

std::optional<CellForm> choose_cells(const Tiling& tiling) {
  const auto longest = [](int64_t side) {
    return CellShape{.rows = side % 8 == 0 ? 8 : 4, .columns = 1};
  };
  if (tiling.rows % 4 == 0 && tiling.columns % 4 == 0) {
    return CellForm{.cell = {.rows = 4, .columns = 4}};
  }
  if (tiling.rows % 4 == 0) return CellForm{.cell = longest(tiling.rows)};
  if (tiling.columns % 4 == 0) {
    return CellForm{.cell = longest(tiling.columns), .is_transposed = true};
  }
  return std::nullopt;
}

GroupedIndex::GroupedIndex(const Shape& shape, const CellForm& form, const Positions& positions)
    : shape_(shape),
      is_transposed(form.is_transposed),
      stream(form.is_transposed ? transposed_stream_of(form.cell, positions)
                                : stream_of(form.cell, positions)) {}

GroupedIndex::GroupedIndex(const Shape& shape, GroupedStream cells, BitMask mask)
    : shape_(shape), mask_(std::move(mask)), is_transposed(false), stream(std::move(cells)) {}

int64_t GroupedIndex::bytes() const {
  const int64_t bits = mask_ ? static_cast<int64_t>(mask_->words().size_bytes()) : 0;
  return stream.bytes() + by_columns_.bytes() + bits;
}

void GroupedIndex::take(std::span<const float> dense, std::span<float> values) const {
  const int64_t rows = stream.cell.rows, columns = stream.cell.columns, width = stream.columns();
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

const GroupedTransposed& GroupedIndex::by_columns() const {
  std::call_once(once_, [&] { by_columns_ = grouped_transposed(stream); });
  return by_columns_;
}

// The cells, ascending by row of cells and column. The segments of a row of cells follow each other
// by tile in the stream, with those of other rows between them.
std::vector<GroupedIndex::Cell> GroupedIndex::cells_by_rows() const {
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
std::vector<int64_t> GroupedIndex::row_begins(const std::vector<Cell>& cells) const {
  const CellShape& shape = stream.cell;
  std::vector<int64_t> begin(static_cast<size_t>(is_transposed ? stream.columns() : stream.rows()) +
                             1);
  for (const Cell& cell : cells) {
    if (is_transposed) {
      begin[static_cast<size_t>(cell.column) + 1] += shape.rows;
    } else {
      for (int64_t r = 1; r <= shape.rows; ++r) {
        begin[static_cast<size_t>(cell.row * shape.rows + r)] += shape.columns;
      }
    }
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  return begin;
}

std::vector<uint32_t> GroupedIndex::elements() const {
  const CellShape& shape = stream.cell;
  const std::vector<Cell> cells = cells_by_rows();
  std::vector<int64_t> next = row_begins(cells);  // of each row of the weight, its next element
  std::vector<uint32_t> element(static_cast<size_t>(stream.nnz()));
  for (const Cell& cell : cells) {
    uint32_t* of_cell = element.data() + cell.place * shape.size();
    if (is_transposed) {
      for (int64_t k = 0; k < shape.rows; ++k) {
        of_cell[k] = static_cast<uint32_t>(next[static_cast<size_t>(cell.column)]++);
      }
      continue;
    }
    for (int64_t r = 0; r < shape.rows; ++r) {
      int64_t& in_row = next[static_cast<size_t>(cell.row * shape.rows + r)];
      for (int64_t c = 0; c < shape.columns; ++c) {
        of_cell[c * shape.rows + r] = static_cast<uint32_t>(in_row++);
      }
    }
  }
  return element;
}

Positions GroupedIndex::positions() const {
  const CellShape& shape = stream.cell;
  const std::vector<Cell> cells = cells_by_rows();
  const std::vector<uint32_t> element = elements();
  std::vector<uint32_t> columns(element.size());
  for (const Cell& cell : cells) {
    for (int64_t k = 0; k < shape.size(); ++k) {
      const int64_t column =
          is_transposed ? cell.row * shape.rows + k : cell.column * shape.columns + k / shape.rows;
      columns[element[static_cast<size_t>(cell.place * shape.size() + k)]] =
          static_cast<uint32_t>(column);
    }
  }
  return Positions(shape_, row_begins(cells), std::move(columns));
}

}  // namespace lacuna
