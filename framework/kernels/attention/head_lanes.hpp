// Copies one head's features, as lanes of tokens, from activations in either order and back.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Some columns of the rows of one example.
struct HeadPlace {
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
};

/// Whether each block of 64 tokens of an example with this number of tokens is in one slab, in
/// whole vectors of any width: then nothing needs to be copied.
bool lies_on_slabs(int64_t tokens);

/// into[column · stride + row] = the element of x, which is row-major or in slabs of the batch; its
/// rows are all leading dimensions together. *Cost:* one pass: runs of lanes are copied from slabs,
/// rows are transposed.
void read_head(const Tensor& x, const HeadPlace& place, int64_t stride, float* into);
/// The reverse. It changes nothing else in x.
void write_head(const float* from, int64_t stride, const HeadPlace& place, Tensor& x);

}  // namespace lacuna
