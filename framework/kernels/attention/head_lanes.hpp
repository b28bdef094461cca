// The features of one head as lanes of tokens, out of activations in either storage order and back.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Some columns of the rows of one example.
struct HeadPlace {
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
};

/// Whether in slabs each block of 64 tokens of an example of so many lies in one slab, by whole
/// vectors of any width: then nothing needs to be copied.
bool lies_on_slabs(int64_t tokens);

/// into[column · stride + row] = the element of x, which is row-major or in slabs of the batch, and
/// its rows all its leading dimensions. *Cost:* one pass: runs of lanes out of slabs, transposed
/// out of rows.
void read_head(const Tensor& x, const HeadPlace& place, int64_t stride, float* into);
/// The way back. It touches nothing else of x.
void write_head(const float* from, int64_t stride, const HeadPlace& place, Tensor& x);

}  // namespace lacuna
