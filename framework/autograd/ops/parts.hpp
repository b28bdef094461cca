// Operations that take the inputs of a concatenation in place of what it gives.
#pragma once

#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// The inputs of the concatenation along the features of tokens that x stands for, where it is not
/// computed yet; else empty. One that takes them, and records them as its inputs, spares a copy of
/// all of them in the forward pass and one of their gradients in the backward pass.
std::vector<Variable> parts_of(const Variable& x);

}  // namespace lacuna
