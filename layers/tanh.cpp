#include "lacuna/layers/tanh.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable Tanh::forward(const Variable& input) { return lacuna::tanh(input); }

}  // namespace lacuna
