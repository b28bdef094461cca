// Builds streams of cells: see block_products.hpp.
#include <fmt/core.h>
#include <algorithm>
#include <numeric>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/blocks/block_products.hpp"

namespace lacuna {
namespace {

// A tile has enough columns of weights in each row that loading and storing a row's outputs costs
// little in comparison, but no more columns of a slab than the caches hold: the multiply-adds read
// so few activations that the second-level cache is fast enough.
CsrCut choose_cut(const PatternShape& cell, int64_t rows, int64_t columns, int64_t cells) {
  constexpr double kColumnsInRow = 64.0;
  constexpr int64_t kShortest = 128, kLongest = 2048, kRows = 512, kValues = 1 << 15;
  const double positions = static_cast<double>(rows) * static_cast<double>(columns);
  const double density = positions == 0 ? 1.0 : static_cast<double>(cells) / positions;
  const double wanted = std::min(kColumnsInRow / std::max(density, 1e-6), 1e6);
  const int64_t longest = std::clamp(static_cast<int64_t>(wanted), kShortest, kLongest);
  const int64_t most = std::max<int64_t>(longest / cell.unit_columns(), 1);
  const int64_t tiles = std::max<int64_t>((columns + most - 1) / most, 1);
  return {.tile_columns = std::max<int64_t>((columns + tiles - 1) / tiles, 1),
          .rows_in_block = kRows / cell.unit_rows(),
          .nonzeros_in_block = kValues / cell.unit_size()};
}

void order_tiles(BlockStream& stream) {
  const CsrStream& cells = stream.cells;
  const auto columns = std::max<size_t>(
      1, static_cast<size_t>((cells.columns + cells.tile_columns - 1) / cells.tile_columns));
  const auto column = [&](const CsrTile& tile) {
    return static_cast<size_t>(tile.first_column / cells.tile_columns);
  };
  stream.tile_begin.assign(columns + 2, 0);
  for (const CsrTile& tile : cells.tiles) ++stream.tile_begin[column(tile) + 2];
  std::partial_sum(stream.tile_begin.begin(), stream.tile_begin.end(), stream.tile_begin.begin());
  stream.tile_order.resize(cells.tiles.size());
  for (size_t t = 0; t < cells.tiles.size(); ++t) {
    stream.tile_order[stream.tile_begin[column(cells.tiles[t]) + 1]++] = static_cast<uint32_t>(t);
  }
  stream.tile_begin.pop_back();
}

template <class Vector>
int64_t bytes_of(const Vector& v) {
  return static_cast<int64_t>(v.size() * sizeof(v[0]));
}

}  // namespace

int64_t BlockStream::bytes() const {
  return cells.bytes() + bytes_of(tile_begin) + bytes_of(tile_order);
}

int64_t BlockTransposed::bytes() const { return cells.bytes() + bytes_of(source); }

BlockStream block_stream(const PatternShape& cell, int64_t rows, int64_t columns,
                         std::span<const int64_t> row_begin, std::span<const uint32_t> column_of) {
  const bool is_known = cell == PatternShape::block(8, 1) || cell == PatternShape::block(4, 1) ||
                        cell == PatternShape::block(4, 4);
  if (!is_known) {
    throw StateError(fmt::format("block_stream: cells are 8 x 1, 4 x 1 or 4 x 4, not {} x {}",
                                 cell.unit_rows(), cell.unit_columns()));
  }
  const int64_t count = row_begin.back() - row_begin.front();
  BlockStream stream{.cell = cell,
                     .cells = csr_stream(rows, columns, row_begin, column_of,
                                         choose_cut(cell, rows, columns, count))};
  order_tiles(stream);
  return stream;
}

// A counting sort of the cells by column and, within a column, by row, in the stream's order.
BlockTransposed block_transposed(const BlockStream& stream) {
  struct Cell {
    uint32_t row = 0, place = 0;
  };
  const CsrStream& cells = stream.cells;
  std::vector<int64_t> begin(static_cast<size_t>(cells.columns) + 2);
  const auto for_each_cell = [&](const auto& visit) {
    csr_for_each_segment(cells, [&](int64_t row, int64_t first, int64_t column, int64_t length) {
      for (int64_t k = first; k < first + length; ++k) {
        visit(static_cast<size_t>(column + cells.offsets[static_cast<size_t>(k)]),
              Cell{.row = static_cast<uint32_t>(row), .place = static_cast<uint32_t>(k)});
      }
    });
  };
  for_each_cell([&](size_t column, Cell) { ++begin[column + 2]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Cell> sorted(static_cast<size_t>(cells.nnz));
  for_each_cell(
      [&](size_t column, Cell cell) { sorted[static_cast<size_t>(begin[column + 1]++)] = cell; });
  begin.pop_back();
  std::vector<uint32_t> row_of(sorted.size());
  for (size_t c = 0; c + 1 < begin.size(); ++c) {
    std::sort(sorted.begin() + begin[c], sorted.begin() + begin[c + 1],
              [](const Cell& a, const Cell& b) { return a.row < b.row; });
  }
  for (size_t i = 0; i < sorted.size(); ++i) row_of[i] = sorted[i].row;
  const PatternShape flipped =
      PatternShape::block(stream.cell.unit_columns(), stream.cell.unit_rows());
  BlockTransposed transposed;
  transposed.cells = csr_stream(cells.columns, cells.rows, begin, row_of,
                                choose_cut(flipped, cells.columns, cells.rows, cells.nnz));
  transposed.source = csr_canonical_places(transposed.cells, begin);
  for (uint32_t& place : transposed.source) place = sorted[place].place;
  const uint32_t last = transposed.source.empty() ? 0 : transposed.source.back();
  transposed.source.insert(transposed.source.end(), BlockTransposed::kAhead, last);
  return transposed;
}

}  // namespace lacuna
