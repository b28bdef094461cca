// The pattern that a mask has, found by looking at it: for weights that others have pruned.
#pragma once

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// The narrowest pattern shape that a mask fills, or the unstructured one.
///
/// N:M comes first, by the smallest M from 2 to 16 that divides the columns: no cell has more than
/// N positions, N is below M, and at least 95 % of what the pattern has room for is there, so that
/// a mask which is merely very sparse is not taken for one. Rows that share their cells in aligned
/// groups of 2, 4, 8, 16 or 32 give `shared_rows`; 2:4 whose tiles of 4 × 4 are 2:4 by column too
/// is transposable. Then blocks whose sides are 1, 2, 4, 8, 16 or 32, the largest that exist whole
/// or not at all. Of a convolution's weight columns are input channels, at one tap.
///
/// Full masks, empty ones and those of fewer than two dimensions are unstructured. *Errors:*
/// ShapeError when the mask has another size than the shape. *Cost:* O(numel), a byte a position.
PatternShape find_pattern(const Shape& shape, const BitMask& mask);

}  // namespace lacuna
