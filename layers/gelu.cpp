#include "lacuna/layers/gelu.h"

#include "lacuna/framework/autograd/ops/activation.h"

namespace lacuna {

Variable GELU::forward(const Variable& input) {
  return options_.approximate == Approximate::Tanh ? gelu_tanh(input) : gelu(input);
}

}  // namespace lacuna
