// The linear operation: Y = X Wᵀ + b, with the weight by reference.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/param/gradient_sink.h"

namespace lacuna {

/// Y = X Wᵀ + b. *Shapes:* x [..., in], weight [out, in], bias [out] or undefined → [..., out]. The
/// three products run in the weight's layout; the weight's gradient goes to its sink, not through
/// the graph. N:M sparse activations run on sparse products if that is faster
/// (linear_sparse_input.hpp). *Errors:* ShapeError that names the weight and both shapes.
Variable linear(const Variable& x, const WeightReference& weight, const Variable& bias);

/// Y = X Wᵀ + b with a parameter, which collects its own gradient unless it is
/// frozen.
Variable linear(const Variable& x, const ParameterPtr& weight, const Variable& bias);

}  // namespace lacuna
