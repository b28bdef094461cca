// The products of cells in plain C++, to check the vectorized ones: see block_products.hpp.
#pragma once

#include <algorithm>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/blocks/block_products.hpp"
#include "lacuna/framework/kernels/csr/csr_reference.hpp"

namespace lacuna::reference {

/// Calls `visit(row, column, value index)` for each nonzero in a tile of cells that is in the
/// block.
template <class Visit>
void block_for_each(const BlockStream& s, const CsrBlock& block, const CsrTile& tile,
                    const Visit& visit) {
  const int64_t rows = s.cell.unit_rows(), columns = s.cell.unit_columns();
  for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
    const CsrGroup group = block.clipped(s.cells.groups[static_cast<size_t>(g)]);
    for (int64_t i = 0; i < group.rows * group.length; ++i) {
      const int64_t row =
          s.cells.rows_in_order[static_cast<size_t>(group.first_row + i / group.length)];
      const int64_t cell = group.first_value + i;
      const int64_t column = tile.first_column + s.cells.offsets[static_cast<size_t>(cell)];
      for (int64_t k = 0; k < rows * columns; ++k) {
        visit(row * rows + k % rows, column * columns + k / rows, cell * rows * columns + k);
      }
    }
  }
}

/// The places of an example's features: `stride` is the distance from one feature to the next,
/// `step` from one example to the next: 64 and 1 in a slab, 1 and the number of features in
/// rows.
struct Strides {
  int64_t x_stride = kSlabWidth, x_step = 1;
  int64_t y_stride = kSlabWidth, y_step = 1;
};

inline void block_product_at(const BlockStream& s, const CsrBlock& block, const float* values,
                             const float* x, int64_t width, const float* bias, float* y,
                             const Strides& at) {
  for (int64_t e = 0; e < width; ++e) {
    for (int64_t r = block.first_row * s.cell.unit_rows(); r < block.end_row * s.cell.unit_rows();
         ++r) {
      y[r * at.y_stride + e * at.y_step] = bias == nullptr ? 0.0f : bias[r];
    }
    for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
      block_for_each(s, block, s.cells.tiles[static_cast<size_t>(t)],
                     [&](int64_t row, int64_t column, int64_t value) {
                       y[row * at.y_stride + e * at.y_step] +=
                           values[value] * x[column * at.x_stride + e * at.x_step];
                     });
    }
  }
}

/// A block of the transposed cells, in slabs.
inline void block_transposed_block(const PatternShape& cell, const BlockTransposed& transposed,
                                   const CsrBlock& block, const float* values, const float* dy,
                                   int64_t width, float* dx, bool /*prefetch_next*/) {
  const CsrStream& cells = transposed.cells;
  const int64_t first = block.first_row * cell.unit_columns(),
                end = block.end_row * cell.unit_columns();
  std::fill(dx + first * kSlabWidth, dx + end * kSlabWidth, 0.0f);
  csr_for_each_nonzero(cells, block, [&](int64_t column, int64_t place, int64_t row) {
    const float* w = values + transposed.source[static_cast<size_t>(place)] * cell.unit_size();
    for (int64_t k = 0; k < cell.unit_size(); ++k) {
      const float* in = dy + (row * cell.unit_rows() + k % cell.unit_rows()) * kSlabWidth;
      float* out = dx + (column * cell.unit_columns() + k / cell.unit_rows()) * kSlabWidth;
      for (int64_t e = 0; e < width; ++e) out[e] += w[k] * in[e];
    }
  });
}

/// The columns of one column tile.
inline void block_input_gradient_at(const BlockStream& s, int64_t column_tile, const float* values,
                                    const float* dy, int64_t width, const float* bias, float* dx,
                                    const Strides& at) {
  const int64_t tile_columns = s.cells.tile_columns * s.cell.unit_columns();
  const int64_t first = column_tile * tile_columns;
  for (int64_t e = 0; e < width; ++e) {
    for (int64_t c = first; c < std::min(first + tile_columns, s.columns()); ++c) {
      dx[c * at.x_stride + e * at.x_step] = bias == nullptr ? 0.0f : bias[c];
    }
    for (uint32_t i = s.tile_begin[static_cast<size_t>(column_tile)];
         i < s.tile_begin[static_cast<size_t>(column_tile) + 1]; ++i) {
      block_for_each(s, CsrBlock(), s.cells.tiles[s.tile_order[i]],
                     [&](int64_t row, int64_t column, int64_t value) {
                       dx[column * at.x_stride + e * at.x_step] +=
                           values[value] * dy[row * at.y_stride + e * at.y_step];
                     });
    }
  }
}

inline void block_gradient_at(const BlockStream& s, const CsrBlock& block, const float* dy,
                              const float* x, int64_t width, bool accumulate, float* gradient,
                              const Strides& at) {
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    block_for_each(s, block, s.cells.tiles[static_cast<size_t>(t)],
                   [&](int64_t row, int64_t column, int64_t value) {
                     float sum = accumulate ? gradient[value] : 0.0f;
                     for (int64_t e = 0; e < width; ++e) {
                       sum += dy[row * at.y_stride + e * at.y_step] *
                              x[column * at.x_stride + e * at.x_step];
                     }
                     gradient[value] = sum;
                   });
  }
}

// In slabs.
inline void block_product_block(const BlockStream& s, const CsrBlock& block, const float* values,
                                const float* x, int64_t width, const float* bias, float* y,
                                bool /*prefetch_next*/) {
  block_product_at(s, block, values, x, width, bias, y, Strides{});
}
inline void block_scatter_tile(const BlockStream& s, int64_t column_tile, const float* values,
                               const float* dy, int64_t width, const float* bias, float* dx,
                               bool /*prefetch_next*/) {
  block_input_gradient_at(s, column_tile, values, dy, width, bias, dx, Strides{});
}
inline void block_gradient_block(const BlockStream& s, const CsrBlock& block, const float* dy,
                                 const float* x, int64_t batch, bool accumulate, float* gradient) {
  for (int64_t first = 0; first < batch; first += kSlabWidth) {
    const int64_t slab = first / kSlabWidth;
    block_gradient_at(s, block, dy + slab * s.rows() * kSlabWidth,
                      x + slab * s.columns() * kSlabWidth, std::min(kSlabWidth, batch - first),
                      accumulate || first > 0, gradient, Strides{});
  }
}

// Row-major.
inline Strides row_major(const BlockStream& s) {
  return {.x_stride = 1, .x_step = s.columns(), .y_stride = 1, .y_step = s.rows()};
}
inline void block_product_block_rows(const BlockStream& s, const CsrBlock& block,
                                     const float* values, const float* x, int64_t batch,
                                     const float* bias, float* y) {
  block_product_at(s, block, values, x, batch, bias, y, row_major(s));
}
inline void block_scatter_tile_rows(const BlockStream& s, int64_t column_tile, const float* values,
                                    const float* dy, int64_t batch, const float* bias, float* dx) {
  block_input_gradient_at(s, column_tile, values, dy, batch, bias, dx, row_major(s));
}
inline void block_gradient_block_rows(const BlockStream& s, const CsrBlock& block, const float* dy,
                                      const float* x, int64_t batch, bool accumulate,
                                      float* gradient) {
  block_gradient_at(s, block, dy, x, batch, accumulate, gradient, row_major(s));
}

}  // namespace lacuna::reference
