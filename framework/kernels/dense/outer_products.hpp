// The weight gradient of a few examples at the positions of a mask, in one pass over memory.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// gradient = mask ? dYᵀ X : 0, or mask ? gradient + dYᵀ X : 0. It is a selection: NaN and Inf at
/// unset bits become zero. *Shapes:* dy [batch, rows], x [batch, columns], mask and gradient rows ·
/// columns; all row-major. *Errors:* ShapeError if the mask has another size. *Cost:* 2 · batch ·
/// rows · columns operations; the gradient is written once (and read if added to), so up to about
/// 30 examples this is faster than a product and a selection after it.
void masked_outer_products(const BitMask& mask, int64_t batch, int64_t rows, int64_t columns,
                           const float* dy, const float* x, Accumulate accumulate, float* gradient);

}  // namespace lacuna
