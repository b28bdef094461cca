// Some of a sequence's tokens, or one vector of all of them.
#pragma once

#include <cstdint>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// y = x[:, index], a negative index from the end. *Shapes:* x [batch, T, features] → [batch,
/// features], row-major. *Errors:* ShapeError.
Variable select_token(const Variable& x, int64_t index);

/// The tokens at `places` of all that a batch has, one example after the other. *Shapes:* x [batch,
/// T, features], places [n] of batch · T, ascending → [n, features], row-major. *Errors:*
/// ShapeError with both shapes; DataError that names a place out of range or out of order.
Variable select_tokens(const Variable& x, const IndexTensor& places);

/// The mean over the tokens of an example whose mask is not 0, or over all where it is undefined;
/// zeros where there are none. *Shapes:* x [batch, T, features], mask [batch, T] → [batch,
/// features]. *Errors:* ShapeError with both shapes.
Variable mean_of_tokens(const Variable& x, const IndexTensor& mask = {});

}  // namespace lacuna
