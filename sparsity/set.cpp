#include "lacuna/sparsity/set.h"

#include <algorithm>

#include "lacuna/sparsity/selection.h"

namespace lacuna {

BitMask Set::update_mask(const Parameter& parameter, const BitMask& mask, float) {
  const GroupIndex index = groups(parameter);
  const int64_t kept = kept_after_drop(drop_fraction(), mask.count(), index.count());
  const BitMask dropped =
      drop_minimum(magnitudes(parameter.to_dense().storage()), kept, mask, index);
  return grow(parameter, dropped, target_nnz(parameter) / index.count());
}

int64_t Set::nnz_after_update(int64_t nnz, int64_t target, int64_t groups, int64_t step,
                              int64_t updates) const {
  return std::max(kept_after_drop(drop_fraction_at(step, updates), nnz, groups) * groups, target);
}

BitMask Set::grow(const Parameter& parameter, const BitMask& mask, int64_t per_group) {
  const CounterRng rng(options().seed, parameter.name() + "/grow", static_cast<uint64_t>(step()));
  return grow_random(rng, per_group, mask, groups(parameter));
}

}  // namespace lacuna
