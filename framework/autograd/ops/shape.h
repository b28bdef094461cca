// Changes of shape as operations.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// The same elements, in row-major order, under another shape. *Errors:* ShapeError when the number
/// of elements differs. *Cost:* none for a row-major input, else its conversion.
Variable reshape(const Variable& x, const Shape& shape);

/// All dimensions after the first made one. *Shapes:* [batch, ...] → [batch, features].
/// *Errors:* ShapeError on a scalar.
Variable flatten(const Variable& x);

/// The last two dimensions exchanged: y[..., j, i] = x[..., i, j]. *Shapes:* [..., m, n] → [..., n,
/// m], row-major. *Errors:* ShapeError below rank 2. *Cost:* a pass by tiles.
Variable transpose(const Variable& x);

}  // namespace lacuna
