#include "lacuna/layers/silu.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable SiLU::forward(const Variable& input) { return silu(input); }

}  // namespace lacuna
