// The N:M products in plain C++, to check the vectorized ones: see nm.hpp.
#pragma once

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna::reference {

/// Rows [begin, end): calls `visit(slot, row, column)` for each slot, including unused ones.
template <class Visit>
void nm_for_each_slot(const NmMatrix& s, int64_t begin, int64_t end, const Visit& visit) {
  for (int64_t t = 0; t < s.form.tiles(); ++t) {
    const NmTile tile = s.form.tile(t);
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* codes = s.codes.data() + tile.first_code + row * tile.code_bytes;
      for (int64_t k = 0; k < tile.slots; ++k) {
        visit(tile.first_slot + row * tile.slots + k, row,
              tile.first_column + k / s.form.slots() * s.form.m() + s.form.code(codes, k));
      }
    }
  }
}

inline void nm_product_block(const NmMatrix& s, int64_t begin, int64_t end, const float* values,
                             const float* x, int64_t width, const float* bias, float* y,
                             bool /*prefetch_next*/) {
  for (int64_t example = 0; example < width; ++example) {
    for (int64_t row = begin; row < end; ++row) {
      y[row * kSlabWidth + example] = bias == nullptr ? 0.0f : bias[row];
    }
    nm_for_each_slot(s, begin, end, [&](int64_t slot, int64_t row, int64_t column) {
      y[row * kSlabWidth + example] += values[slot] * x[column * kSlabWidth + example];
    });
  }
}

inline void nm_gradient_block(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                              const float* x, int64_t width, bool accumulate, float* gradient,
                              bool /*prefetch_next*/) {
  nm_for_each_slot(s, begin, end, [&](int64_t slot, int64_t row, int64_t column) {
    float sum = accumulate ? gradient[slot] : 0.0f;
    for (int64_t example = 0; example < width; ++example) {
      sum += dy[row * kSlabWidth + example] * x[column * kSlabWidth + example];
    }
    gradient[slot] = sum;
  });
}

// The same for a few examples, row-major.
inline void nm_product_block_rows(const NmMatrix& s, int64_t begin, int64_t end,
                                  const float* values, const float* x, int64_t batch,
                                  const float* bias, float* y) {
  for (int64_t example = 0; example < batch; ++example) {
    float* out = y + example * s.form.rows;
    const float* in = x + example * s.form.columns;
    for (int64_t row = begin; row < end; ++row) out[row] = bias == nullptr ? 0.0f : bias[row];
    nm_for_each_slot(s, begin, end, [&](int64_t slot, int64_t row, int64_t column) {
      out[row] += values[slot] * in[column];
    });
  }
}

inline void nm_gradient_block_rows(const NmMatrix& s, int64_t begin, int64_t end, const float* dy,
                                   const float* x, int64_t batch, bool accumulate,
                                   float* gradient) {
  nm_for_each_slot(s, begin, end, [&](int64_t slot, int64_t row, int64_t column) {
    float sum = accumulate ? gradient[slot] : 0.0f;
    for (int64_t example = 0; example < batch; ++example) {
      sum += dy[example * s.form.rows + row] * x[example * s.form.columns + column];
    }
    gradient[slot] = sum;
  });
}

}  // namespace lacuna::reference
