#include "lacuna/layers/flatten.h"

#include "lacuna/framework/autograd/ops/shape.h"

namespace lacuna {

Variable Flatten::forward(const Variable& input) { return flatten(input); }

}  // namespace lacuna
