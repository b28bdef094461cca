// Changes of shape as operations.
#pragma once

#include <functional>

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

/// What `apply` makes of x, where it is to see the channels of images as their features: those of
/// [batch, channels, height, width] are given as [batch, height · width, channels] and come back in
/// their own shape, which `apply` has to keep; all else is given as it is. *Cost:* of images two
/// transpositions, and two in backward.
Variable with_channels_last(const Variable& x,
                            const std::function<Variable(const Variable& x)>& apply);

}  // namespace lacuna
