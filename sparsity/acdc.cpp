#include "lacuna/sparsity/acdc.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

AcDc::AcDc(DynamicOptions given) : DynamicSparsityAlgorithm(given) {
  if (given.drop_fraction) throw ConfigError("acdc: takes no drop_fraction");
  AcDc::require_settable(options().sparsity);
}

void AcDc::require_settable(const SparsityTarget& sparsity) const {
  if (sparsity.is_constant()) return;
  throw ConfigError("acdc: the sparsity of the compressed phases must be a constant");
}

UpdateSchedule AcDc::default_updates(int64_t steps) const {
  const int64_t freq = std::max<int64_t>(steps / 20, 1);
  const int64_t most = std::max<int64_t>(3 * steps / 4 / freq, 1);
  return UpdateSchedule::every(freq, 0, freq * (most - (most + 1) % 2) + 1);
}

MaskSet AcDc::initial_mask(const SparseWeight& weight, MaskSource source) {
  return source == MaskSource::Made ? MaskSet::all(weight.shape())
                                    : DynamicSparsityAlgorithm::initial_mask(weight, source);
}

MaskSet AcDc::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  // The first update compresses, whatever masks there were before it.
  const int64_t made = updates() - (update_schedule().is_update(0) ? 1 : 0);
  if (made % 2 == 1) return MaskSet::all(weight.shape());
  return weight.selector().prune_gradually(mask, weight.magnitudes().storage(),
                                           weight.target_nnz());
}

void AcDc::forecast(Forecast& forecast) const {
  DynamicSparsityAlgorithm::forecast(forecast);
  const std::vector<int64_t> steps = forecast.parameters.front().update_steps;
  const size_t updates = steps.size();
  if (updates % 2 == 0) {
    throw ConfigError(
        fmt::format("acdc: {} updates leave the network dense at the end, because they alternate; "
                    "an odd number (set update.stop) ends compressed",
                    updates));
  }
  for (PlannedParameter& planned : forecast.parameters) {
    const int64_t compressed = planned.final_nnz, all = planned.shape.numel();
    planned.changes.clear();
    for (size_t i = 0; i < updates; ++i) {  // masks are full before all but the first
      const int64_t before = i == 0 ? planned.initial_nnz : all;
      planned.final_nnz = i % 2 == 1 ? all : std::min(compressed, before);
      planned.changes.push_back({steps[i], planned.final_nnz});
    }
  }
}

}  // namespace lacuna
