// Keeping a part of a tensor, chosen when it is there: for sparse activations and gradients.
#pragma once

#include <functional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// Chooses the elements of a row-major tensor that stay.
using KeepFunction = std::function<BitMask(const Tensor& rows)>;

/// y = x where `choose(x)` keeps it, else 0. The gradient passes at the same elements (as through a
/// ReLU that has chosen them). *Shapes:* any, kept; the result is row-major. *Errors:* ShapeError
/// when the mask has another size. *Saves:* a bit an element.
Variable keep(const Variable& x, const KeepFunction& choose);

/// y = x; in backward dx = dy where `choose(dy)` keeps it, else 0.
Variable keep_gradient(const Variable& x, const KeepFunction& choose);

}  // namespace lacuna
