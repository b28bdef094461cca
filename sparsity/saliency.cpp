#include "lacuna/sparsity/saliency.h"

#include "lacuna/sparsity/selection.h"

namespace lacuna {

std::vector<float> Saliency::scores(const Parameter& parameter) const {
  const Tensor values = parameter.to_dense();
  return products(values.storage(), parameter.gradient().storage());
}

}  // namespace lacuna
