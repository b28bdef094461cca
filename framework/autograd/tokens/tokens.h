// Selects some tokens of a sequence, or reduces them to one vector.
#pragma once

#include <cstdint>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// y = x[:, index], a negative index from the end. *Shapes:* x [batch, T, features] → [batch,
/// features], row-major. *Errors:* ShapeError.
Variable select_token(const Variable& x, int64_t index);

/// Selects the tokens at `places` among all tokens of a batch, example by example. *Shapes:* x
/// [batch, T, features], places [n] of batch · T, ascending → [n, features], row-major. *Errors:*
/// ShapeError with both shapes; DataError that names a place out of range or out of order.
Variable select_tokens(const Variable& x, const IndexTensor& places);

/// The mean over the tokens of an example whose mask is not 0, or over all if it is undefined;
/// zeros if there are none. *Shapes:* x [batch, T, features], mask [batch, T] → [batch, features].
/// *Errors:* ShapeError with both shapes.
Variable mean_of_tokens(const Variable& x, const IndexTensor& mask = {});

}  // namespace lacuna
