// Softmax and its logarithm as operations.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

// Over the last dimension, stable for any finite input. *Shapes:* [..., features], kept.
// *Errors:* ShapeError on a scalar.

/// y_j = e^(x_j) / Σ_k e^(x_k).
Variable softmax(const Variable& x);
/// y_j = x_j − log Σ_k e^(x_k).
Variable log_softmax(const Variable& x);

}  // namespace lacuna
