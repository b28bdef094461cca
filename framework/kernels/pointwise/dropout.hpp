// Dropout: zeroing elements at random.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The factor of element (row, column): 0 with probability p, else 1 / (1 − p). Its random word is
/// number column % 4 of block row · ⌈features/4⌉ + ⌊column/4⌋, so it does not depend on the storage
/// order or the number of threads.
struct DropoutMask {
  CounterRng rng;
  double p = 0.5;         ///< in [0, 1), exact to 2⁻²⁴
  int64_t first_row = 0;  ///< added to each row: for a part of a batch, the rows before it
};

/// One bit per element, in the order of the tensor (each row or slab begins with a new word):
/// whether the element was kept.
using KeptBits = Array<uint64_t>;

/// y = factor · x (y may be x); NaN and Inf remain at dropped positions, as in PyTorch. *Shapes:* x
/// [..., features]; y of the same shape and order. *Cost:* about 0.5 ns per element with AVX-512.
KeptBits dropout(const DropoutMask& mask, const Tensor& x, Tensor& y);

/// The same with the bits of an earlier call on a tensor of this shape and order: its derivative.
/// *Cost:* reading and writing memory.
void dropout_again(const DropoutMask& mask, const KeptBits& bits, const Tensor& x, Tensor& y);

}  // namespace lacuna
