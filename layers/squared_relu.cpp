#include "lacuna/layers/squared_relu.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable SquaredReLU::forward(const Variable& input) { return squared_relu(input); }

}  // namespace lacuna
