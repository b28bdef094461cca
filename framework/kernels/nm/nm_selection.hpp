// Which weights N:M sparsity keeps: the largest of each group, and of each tile of 4 × 4 where the
// pattern shall be 2:4 both ways.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The n largest |w| of each group; of equal ones those that come first. NaN is below all else.
/// *Shapes:* weights [form.rows, form.columns] → as many bits. *Errors:* ShapeError when the sizes
/// differ. *Cost:* one pass; SIMD for 1, 2 or 4 of 4, 8 or 16.
BitMask nm_select(const NmMatrixForm& form, std::span<const float> weights);

/// What nm_select keeps, as a matrix with its values, in one pass: for weights that are selected
/// again at every step. The vectors of `matrix` are reused. *Shapes:* weights as above, values
/// [form.stored()]. *Errors:* as above.
void nm_select_values(const NmMatrixForm& form, std::span<const float> weights, NmMatrix& matrix,
                      std::span<float> values);

/// A 2:4 mask whose transpose is 2:4 too: of each tile of 4 × 4 at most two weights in each row and
/// column.
///
/// Kept is the largest sum of |w| of the 90 patterns with two in each row and column; NaN counts as
/// 0. Sums are those of floats, taken in one order, and of equal ones the first is taken, as
/// reference::select_tile has them (nm_selection_reference.hpp): where rounding hides which pattern
/// is the best, or several are, it is the same one on every machine.
///
/// *Shapes:* weights [rows, columns], both divisible by four. *Errors:* ShapeError where they are
/// not, or the sizes differ. *Cost:* one pass, SIMD.
BitMask transposable_select(int64_t rows, int64_t columns, std::span<const float> weights);

}  // namespace lacuna
