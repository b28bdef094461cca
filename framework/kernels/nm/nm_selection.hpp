// Selects the weights that N:M sparsity keeps: the largest of each group or, for patterns that are
// 2:4 in both directions, of each tile of 4 × 4.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// The n largest |w| of each group; of equal ones the first. NaN is the smallest. *Shapes:* weights
/// [form.rows, form.columns] → as many bits. *Errors:* ShapeError if the sizes differ. *Cost:* one
/// pass; SIMD for 1, 2 or 4 of 4, 8 or 16.
BitMask nm_select(const NmMatrixForm& form, std::span<const float> weights);

/// The selection of nm_select as a matrix with its values, in one pass, for weights that are
/// selected again at every step. The vectors of `matrix` are reused. *Shapes:* weights as above,
/// values [form.stored()]. *Errors:* as above.
void nm_select_values(const NmMatrixForm& form, std::span<const float> weights, NmMatrix& matrix,
                      std::span<float> values);

/// A 2:4 mask whose transpose is 2:4 too: in each tile of 4 × 4, at most two weights in each row
/// and column.
///
/// Selects the largest sum of |w| of the 90 patterns with two in each row and column; NaN counts as
/// 0. Sums are in float and in one order, and the first of equal sums is selected, as by
/// reference::select_tile (nm_selection_reference.hpp). So if rounding hides the best pattern, or
/// if several are equal, every machine selects the same one.
///
/// *Shapes:* weights [rows, columns], both divisible by four. *Errors:* ShapeError otherwise, or if
/// the sizes differ. *Cost:* one pass, SIMD.
BitMask transposable_select(int64_t rows, int64_t columns, std::span<const float> weights);

}  // namespace lacuna
