// Concatenation as an operation.
#pragma once

#include <span>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Concatenates the inputs along a dimension (negative: from the end). *Shapes:* all other
/// dimensions are equal. The value is row-major; if all inputs are in slabs of the batch and the
/// dimension is the last, it is in slabs too. *Errors:* ShapeError with the shapes, or without
/// inputs. *Cost:* a copy of each input, and of each gradient; no copy along the features of tokens
/// [batch, T, features] if an operation reads the inputs directly, as attention does with queries,
/// keys and values.
Variable concatenate(std::span<const Variable> inputs, int dimension);

}  // namespace lacuna
