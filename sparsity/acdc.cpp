#include "lacuna/sparsity/acdc.h"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

AcDc::AcDc(DynamicOptions given) : DynamicPatternAlgorithm(given) {
  if (given.drop_fraction) throw ConfigError("acdc: takes no drop_fraction");
  if (!options().sparsity.is_constant()) {
    throw ConfigError("acdc: the sparsity of the compressed phases must be a constant");
  }
}

Positions AcDc::update_positions(const Parameter& parameter, const Positions& present, float) {
  if (present.count() < parameter.numel()) return Positions::all(parameter.shape());
  return competition(parameter).thin(present,
                                     magnitudes(parameter.compacted(parameter.values()).storage()),
                                     target_nnz(parameter));
}

void AcDc::foresee(std::vector<PlannedParameter>& planned, int64_t steps) const {
  DynamicSparsityAlgorithm::foresee(planned, steps);
  const size_t updates = planned.front().update_steps.size();
  if (updates % 2 == 0) {
    throw ConfigError("acdc: " + std::to_string(updates) +
                      " updates leave the network dense at the end, for they alternate; an odd "
                      "number (by update.stop, say) ends compressed");
  }
}

}  // namespace lacuna
