#include "lacuna/sparsity/saliency.h"

#include "lacuna/sparsity/selection.h"

namespace lacuna {

std::vector<float> Saliency::scores(const Parameter& parameter) const {
  const Tensor gradient = parameter.compacted(parameter.gradient());
  return products(parameter.compacted(parameter.values()).storage(), gradient.storage());
}

}  // namespace lacuna
