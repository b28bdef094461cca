// For operations that read the inputs of a concatenation instead of its result.
#pragma once

#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// If x is a deferred concatenation along the features of tokens, its inputs; else empty. An
/// operation that records them as its inputs saves a copy of all of them in the forward pass, and a
/// copy of their gradients in the backward pass.
std::vector<Variable> parts_of(const Variable& x);

}  // namespace lacuna
