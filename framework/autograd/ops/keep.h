// Keeping a part of a tensor, chosen when it is there: for sparse activations and gradients.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// Chooses the elements of a row-major tensor that stay.
using KeepFunction = std::function<BitMask(const Tensor& rows)>;

/// y = x where `choose(x)` keeps it, else 0. The gradient passes at the same elements (as through a
/// ReLU that has chosen them). *Shapes:* any, kept; the result is row-major. *Errors:* ShapeError
/// when the mask has another size. *Saves:* a bit an element.
Variable keep(const Variable& x, const KeepFunction& choose);

/// y = the n largest |x| of each m consecutive features, else 0: what the kernels select
/// (kernels/nm/nm_selection.hpp); of equal ones those that come first. The gradient passes to what
/// was kept alone. The result knows that it is N:M sparse (`Variable::nm`), for a linear operation
/// that comes next. *Shapes:* [..., features]; the result is row-major. *Errors:* ConfigError
/// unless 1 ≤ n ≤ m ≤ 16; ShapeError when m does not divide the features. *Saves:* at 2:4 a bit an
/// element.
Variable keep_nm(const Variable& x, int n, int m);
/// *Errors:* those of `keep_nm` for activations of this shape, whose features are `dimension`, -1
/// for the last; begun with `who`.
void require_keep_nm(const std::string& who, const Shape& shape, int dimension, int n, int m);

/// y = x; in backward dx = dy where `choose(dy)` keeps it, else 0.
Variable keep_gradient(const Variable& x, const KeepFunction& choose);

}  // namespace lacuna
