// Keeps a part of a tensor that is chosen by its values: sparse activations and gradients.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// Chooses the kept elements of a row-major tensor.
using KeepFunction = std::function<BitMask(const Tensor& rows)>;

/// y = x where `choose(x)` keeps it, else 0. The gradient passes at the same elements, as through a
/// ReLU. *Shapes:* any, kept; the result is row-major. *Errors:* ShapeError if the mask has another
/// size. *Saves:* one bit per element.
Variable keep(const Variable& x, const KeepFunction& choose);

/// y = the n largest |x| of each m consecutive features, else 0, as the kernels select
/// (kernels/nm/nm_selection.hpp); of equal ones the first. The gradient passes only to the
/// kept ones. The result is marked as N:M sparse (`Variable::nm`), for a following linear
/// operation. *Shapes:* [..., features]; the result is row-major. *Errors:* ConfigError unless
/// 1 ≤ n ≤ m ≤ 16; ShapeError if m does not divide the features. *Saves:* at 2:4, one bit per
/// element.
Variable keep_nm(const Variable& x, int n, int m);
/// *Errors:* those of `keep_nm` for activations of this shape, whose features are `dimension` (-1:
/// the last); the messages begin with `what`.
void require_keep_nm(const std::string& what, const Shape& shape, int dimension, int n, int m);

/// y = x; in backward dx = dy where `choose(dy)` keeps it, else 0.
Variable keep_gradient(const Variable& x, const KeepFunction& choose);

}  // namespace lacuna
