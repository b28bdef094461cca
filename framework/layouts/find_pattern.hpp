// Finds the pattern of a mask, for weights pruned by other tools.
#pragma once

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// The narrowest pattern shape that a mask fills, or the unstructured one.
///
/// N:M comes first, with the smallest M from 2 to 16 that divides the columns: no cell has more
/// than N positions, N is below M, and at least 95 % of the pattern's room is used, so that a mask
/// that is merely very sparse is not taken for N:M. Rows that share their cells in aligned groups
/// of 2, 4, 8, 16 or 32 give `shared_rows`; 2:4 whose tiles of 4 × 4 are 2:4 by column too is
/// transposable. Then blocks with sides of 1, 2, 4, 8, 16 or 32, the largest that exist entirely or
/// not at all. For a convolution's weight, columns are the input channels at one tap.
///
/// Full masks, empty ones and those of fewer than two dimensions are unstructured. *Errors:*
/// ShapeError if the mask has another size than the shape. *Cost:* O(numel), one byte per position.
PatternShape find_pattern(const Shape& shape, const BitMask& mask);

}  // namespace lacuna
