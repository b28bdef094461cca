// The sparse products in plain C++, to check the vectorized ones: see csr.hpp.
#pragma once

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna::reference {

/// One block of rows over one slab: `visit(row, value index, column)` for each of its nonzeros.
template <class Visit>
void csr_for_each_nonzero(const CsrStream& s, const CsrBlock& block, const Visit& visit) {
  for (int64_t t = block.first_tile; t < block.end_tile; ++t) {
    const CsrTile& tile = s.tiles[static_cast<size_t>(t)];
    for (int64_t g = tile.first_group; g < tile.end_group; ++g) {
      const CsrGroup group = block.clipped(s.groups[static_cast<size_t>(g)]);
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = s.rows_in_order[static_cast<size_t>(group.first_row + i)];
        for (int64_t k = 0; k < group.length; ++k) {
          const int64_t value = group.first_value + i * group.length + k;
          visit(row, value, tile.first_column + s.offsets[static_cast<size_t>(value)]);
        }
      }
    }
  }
}

inline void csr_product_block(const CsrStream& s, const CsrBlock& block, const float* values,
                              const float* x, int64_t width, const float* bias, float* y,
                              bool /*prefetch_next*/) {
  for (int64_t example = 0; example < width; ++example) {
    for (int64_t row = block.first_row; row < block.end_row; ++row) {
      y[row * kSlabWidth + example] = bias == nullptr ? 0.0f : bias[row];
    }
    csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
      y[row * kSlabWidth + example] += values[value] * x[column * kSlabWidth + example];
    });
  }
}

inline void csr_gradient_block(const CsrStream& s, const CsrBlock& block, const float* dy,
                               const float* x, int64_t width, bool accumulate, float* gradient,
                               bool /*prefetch_next*/) {
  csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
    float sum = accumulate ? gradient[value] : 0.0f;
    for (int64_t example = 0; example < width; ++example) {
      sum += dy[row * kSlabWidth + example] * x[column * kSlabWidth + example];
    }
    gradient[value] = sum;
  });
}

// The same for a few examples, row-major.
inline void csr_product_block_rows(const CsrStream& s, const CsrBlock& block, const float* values,
                                   const float* x, int64_t batch, const float* bias, float* y) {
  for (int64_t example = 0; example < batch; ++example) {
    float* out = y + example * s.rows;
    const float* in = x + example * s.columns;
    for (int64_t row = block.first_row; row < block.end_row; ++row) {
      out[row] = bias == nullptr ? 0.0f : bias[row];
    }
    csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
      out[row] += values[value] * in[column];
    });
  }
}

inline void csr_gradient_block_rows(const CsrStream& s, const CsrBlock& block, const float* dy,
                                    const float* x, int64_t batch, bool accumulate,
                                    float* gradient) {
  csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
    float sum = accumulate ? gradient[value] : 0.0f;
    for (int64_t example = 0; example < batch; ++example) {
      sum += dy[example * s.rows + row] * x[example * s.columns + column];
    }
    gradient[value] = sum;
  });
}

inline void csr_scatter_block_row(const CsrStream& s, const CsrBlock& block, const float* values,
                                  const float* dy, float* dx) {
  csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
    dx[column] += values[value] * dy[row];
  });
}

// The same for a few interleaved examples, [features, batch].
inline void csr_product_block_interleaved(const CsrStream& s, const CsrBlock& block,
                                          const float* values, const float* x, int64_t batch,
                                          const float* bias, float* y) {
  for (int64_t row = block.first_row; row < block.end_row; ++row) {
    for (int64_t example = 0; example < batch; ++example) {
      y[row * batch + example] = bias == nullptr ? 0.0f : bias[row];
    }
  }
  csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
    for (int64_t example = 0; example < batch; ++example) {
      y[row * batch + example] += values[value] * x[column * batch + example];
    }
  });
}

inline void csr_gradient_block_interleaved(const CsrStream& s, const CsrBlock& block,
                                           const float* dy, const float* x, int64_t batch,
                                           bool accumulate, float* gradient) {
  csr_for_each_nonzero(s, block, [&](int64_t row, int64_t value, int64_t column) {
    float sum = accumulate ? gradient[value] : 0.0f;
    for (int64_t example = 0; example < batch; ++example) {
      sum += dy[row * batch + example] * x[column * batch + example];
    }
    gradient[value] = sum;
  });
}

}  // namespace lacuna::reference
