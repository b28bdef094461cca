// Dropout: zeroing elements at random.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The factor of element (row, column): 0 with probability p, else 1 / (1 − p). Its random word is
/// number column % 4 of block row · ⌈features/4⌉ + ⌊column/4⌋, so that it is the same in either
/// storage order and on any number of threads.
struct DropoutMask {
  CounterRng rng;
  double p = 0.5;         ///< in [0, 1), exact to 2⁻²⁴
  int64_t first_row = 0;  ///< added to each row: of a part of a batch, rows that are before it
};

/// y = factor · x (y may be x); NaN and Inf stay visible at dropped positions, as in PyTorch. The
/// derivative is the same function: nothing needs to be kept for the backward pass.
/// *Shapes:* x [..., features]; y of the same shape and order. *Cost:* a quarter of a Philox block
/// (some 10 ns) an element.
void dropout(const DropoutMask& mask, const Tensor& x, Tensor& y);

}  // namespace lacuna
