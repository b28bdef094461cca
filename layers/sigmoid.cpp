#include "lacuna/layers/sigmoid.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable Sigmoid::forward(const Variable& input) { return sigmoid(input); }

}  // namespace lacuna
