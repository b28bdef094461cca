// Changes of shape as operations.
#pragma once

#include <functional>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// The same elements, in row-major order, under another shape. *Errors:* ShapeError when the number
/// of elements differs. *Cost:* none for a row-major input, else its conversion.
Variable reshape(const Variable& x, const Shape& shape);

/// Flattens all dimensions after the first. *Shapes:* [batch, ...] → [batch, features]. *Errors:*
/// ShapeError on a scalar.
Variable flatten(const Variable& x);

/// Exchanges the last two dimensions: y[..., j, i] = x[..., i, j]. *Shapes:* [..., m, n] → [..., n,
/// m], row-major. *Errors:* ShapeError below rank 2. *Cost:* one pass by tiles.
Variable transpose(const Variable& x);

/// The result of `apply` on x with the channels of images as features: images [batch, channels,
/// height, width] are passed as [batch, height · width, channels] and returned in their own shape,
/// so `apply` must keep the shape; other tensors are passed unchanged. *Cost:* for images, two
/// transpositions, and two in backward.
Variable with_channels_last(const Variable& x,
                            const std::function<Variable(const Variable& x)>& apply);

}  // namespace lacuna
