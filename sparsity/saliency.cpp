#include "lacuna/sparsity/saliency.h"

#include <utility>

namespace lacuna {
namespace {

Tensor scores(const SparseWeight& weight) {
  const Parameter& parameter = weight.parameter();
  return magnitudes_of_products(weight.elements(), parameter.compacted(parameter.gradient()));
}

}  // namespace

Saliency::Saliency(DynamicOptions options) : Gmp(std::move(options), "saliency", scores) {}

}  // namespace lacuna
