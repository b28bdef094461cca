// The columns of one head, out of activations in either storage order and back.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Some columns of the rows of one example.
struct HeadPlace {
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
};

/// into[row · stride + column] = the element of x, which is row-major or in slabs of the batch, and
/// its rows all its leading dimensions. *Cost:* one pass; from slabs a transposition, 64 rows of a
/// column at a time.
void read_head(const Tensor& x, const HeadPlace& place, int64_t stride, float* into);
/// The way back.
void write_head(const float* from, int64_t stride, const HeadPlace& place, Tensor& x);

/// into[column · rows + row] = from[row · stride + column].
void transpose_head(const float* from, int64_t stride, int64_t rows, int64_t columns, float* into);

}  // namespace lacuna
