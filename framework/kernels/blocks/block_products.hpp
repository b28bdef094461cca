// Sparse matrices whose nonzeros form cells, small dense rectangles, with the three products of
// training: grouped N:M patterns (columns shared by 8 or 4 consecutive rows) and blocks.
//
// The cells of a matrix are the nonzeros of a smaller one, [rows / G, columns / R], which is a
// stream of kernels/csr/csr.hpp. The values of a cell are stored column by column, [cell][R][G], in
// the order of the stream. Each loaded vector of activations serves all G rows, so the products are
// bound by the multiply-adds and not by the loads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna {

struct BlockStream {
  PatternShape cell;  ///< blocks of 8 × 1 or 4 × 1 (columns anywhere), or 4 × 4
  CsrStream cells;    ///< of the matrix of cells
  /// The tiles of `cells` (of all blocks) by their columns: those of column tile t are
  /// tile_order[tile_begin[t]] … tile_order[tile_begin[t + 1] − 1].
  std::vector<uint32_t> tile_begin = {}, tile_order = {};

  int64_t rows() const { return cells.rows * cell.unit_rows(); }
  int64_t columns() const { return cells.columns * cell.unit_columns(); }
  int64_t nnz() const { return cells.nnz * cell.unit_size(); }
  int64_t bytes() const;
};

/// Builds the stream from the cells by rows, as csr_stream does from nonzeros. *Shapes:* rows and
/// columns count cells. *Cost:* O(cells + rows + blocks · tiles). *Errors:* StateError if the
/// kernels do not support this size of cells.
BlockStream block_stream(const PatternShape& cell, int64_t rows, int64_t columns,
                         std::span<const int64_t> row_begin, std::span<const uint32_t> column_of);

/// The cells by columns, for the input gradient of 4 × 4 cells. It holds no values.
struct BlockTransposed {
  /// Number of cells whose values are prefetched.
  static constexpr int64_t kAhead = 8;

  CsrStream cells;         ///< of the transposed matrix of cells
  Array<uint32_t> source;  ///< for each of its cells, the place in the stream; kAhead more
  int64_t bytes() const;
};
BlockTransposed block_transposed(const BlockStream& stream);

// The products. Work is cut by the pattern and the batch, never by the number of threads, and each
// sum has one order. Activations are batch slabs, [batch/64][features][64]; padding columns of the
// last slab are either computed or left unchanged.

/// Y = X Wᵀ + bias. *Shapes:* x slabs of [batch, columns], y slabs of [batch, rows], bias [rows] or
/// null. *Cost:* 2 · nnz · batch operations.
void block_product(const BlockStream& stream, const float* values, const float* x, int64_t batch,
                   const float* bias, float* y);

/// dX = dY W + bias. *Shapes:* dy slabs of [batch, rows], dx slabs of [batch, columns], bias
/// [columns] or null; with a bias, this is the forward product of a weight that is stored
/// transposed. Sums are added to the columns in place; for cells of one column.
void block_input_gradient(const BlockStream& stream, const float* values, const float* dy,
                          int64_t batch, const float* bias, float* dx);
/// dX = dY W with the transposed cells, for 4 × 4 cells.
void block_input_gradient(const BlockStream& stream, const BlockTransposed& transposed,
                          const float* values, const float* dy, int64_t batch, float* dx);

/// gradient = dYᵀ X in the cells, written or added. *Requires* zero padding in the last slab of dy,
/// and finite padding in x's.
void block_gradient(const BlockStream& stream, const float* dy, const float* x, int64_t batch,
                    Accumulate accumulate, float* gradient);

// The products of batches of a few examples, row-major: x, dx [batch, columns], y, dy [batch,
// rows].
void block_product_row_major(const BlockStream& stream, const float* values, const float* x,
                             int64_t batch, const float* bias, float* y);
void block_input_gradient_row_major(const BlockStream& stream, const float* values, const float* dy,
                                    int64_t batch, const float* bias, float* dx);
void block_gradient_row_major(const BlockStream& stream, const float* dy, const float* x,
                              int64_t batch, Accumulate accumulate, float* gradient);

}  // namespace lacuna
