// Operations that join a batch normalization before them: see batch_norm.cpp.
#pragma once

#include <optional>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// The sum, where one of them is a normalization that is not computed yet; it still is not then.
std::optional<Variable> fused_add(const Variable& a, const Variable& b);
/// The ReLU, where x is a normalization (with a sum) that is not computed yet.
std::optional<Variable> fused_relu(const Variable& x);

}  // namespace lacuna
