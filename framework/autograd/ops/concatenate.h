// Tensors side by side as an operation.
#pragma once

#include <span>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// The inputs one after the other along a dimension (negative: from the end). *Shapes:* all other
/// dimensions are equal. The value is in row-major order; where all inputs are in slabs of the
/// batch and the dimension is the last, it is in slabs too. *Errors:* ShapeError with the shapes,
/// or without any input. *Cost:* a copy of each input, and one of each gradient; none
/// along the features of tokens [batch, T, features] where an operation takes the inputs
/// themselves, as attention does of queries, keys and values.
Variable concatenate(std::span<const Variable> inputs, int dimension);

}  // namespace lacuna
