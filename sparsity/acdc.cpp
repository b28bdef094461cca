#include "lacuna/sparsity/acdc.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

AcDc::AcDc(DynamicOptions given) : DynamicSparsityAlgorithm(given) {
  if (given.drop_fraction) throw ConfigError("acdc: takes no drop_fraction");
  if (!options().sparsity.is_constant()) {
    throw ConfigError("acdc: the sparsity of the compressed phases must be a constant");
  }
}

MaskSet AcDc::initial_mask(const SparseWeight& weight, MaskSource source) {
  return source == MaskSource::Made ? MaskSet::all(weight.shape())
                                    : DynamicSparsityAlgorithm::initial_mask(weight, source);
}

MaskSet AcDc::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  if (mask.count() < weight.numel()) return MaskSet::all(weight.shape());
  return weight.selector().prune_gradually(mask, weight.magnitudes().storage(),
                                           weight.target_nnz());
}

void AcDc::forecast(Forecast& forecast) const {
  DynamicSparsityAlgorithm::forecast(forecast);
  const size_t updates = forecast.parameters.front().update_steps.size();
  if (updates % 2 == 0) {
    throw ConfigError(
        fmt::format("acdc: {} updates leave the network dense at the end, for they alternate; an "
                    "odd number (by update.stop, say) ends compressed",
                    updates));
  }
}

}  // namespace lacuna
