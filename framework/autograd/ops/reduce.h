// Sum and mean of all elements as operations.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// Σ x over all elements, a scalar.
Variable sum(const Variable& x);

/// Σ x / numel, a scalar. *Errors:* ShapeError when there is no element.
Variable mean(const Variable& x);

}  // namespace lacuna
