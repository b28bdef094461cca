// What makes one vector of a sequence of tokens.
#pragma once

#include <cstdint>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// y = x[:, index], a negative index from the end. *Shapes:* x [batch, T, features] → [batch,
/// features], row-major. *Errors:* ShapeError.
Variable select_token(const Variable& x, int64_t index);

/// The mean over the tokens of an example whose mask is not 0, or over all where it is undefined;
/// zeros where there are none. *Shapes:* x [batch, T, features], mask [batch, T] → [batch,
/// features]. *Errors:* ShapeError with both shapes.
Variable mean_of_tokens(const Variable& x, const IndexTensor& mask = {});

}  // namespace lacuna
