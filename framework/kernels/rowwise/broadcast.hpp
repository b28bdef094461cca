// Broadcasting: stretching tensors to a common shape, and summing a gradient back.
#pragma once

#include <string_view>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The shape that a and b stretch to: aligned at the last dimension, sizes equal or one of them 1.
/// *Errors:* ShapeError with the op's name and both shapes. *Source:* NumPy's rules.
Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b);

/// x repeated along its dimensions of size 1 and its missing ones. x itself when the shapes agree.
/// *Requires* that x.shape() broadcasts to `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// The transpose of broadcast_to: the sum over the dimensions along which `shape` was repeated.
/// x itself when the shapes agree. *Requires* that `shape` broadcasts to x.shape(). The order of
/// the sum does not depend on the number of threads; sums are in double.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace lacuna
