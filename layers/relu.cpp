#include "lacuna/layers/relu.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable ReLU::forward(const Variable& input) { return relu(input); }

}  // namespace lacuna
