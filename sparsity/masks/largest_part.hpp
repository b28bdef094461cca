// The largest part of a dense matrix that a pattern lets stay, by kernels: fast enough for every
// step.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// What is kept of a matrix where nothing was kept before: in N:M patterns the N largest units of
/// each M, in block patterns the `count / unit_size` largest units of all, by the sum (or norm) of
/// |w|; of equal ones the first. NaN is below all else. *Requires* a pattern that fits the
/// matrix. *Cost:* one pass over the matrix, and one over the mask; memory for the units' scores. A
/// weight with taps (matrix_taps) is put into another order for the kernels, and the mask back.
BitMask largest_part(const PatternShape& pattern, const Tensor& matrix, int64_t count);

}  // namespace lacuna
