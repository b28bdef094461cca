#include "lacuna/sparsity/set.h"

#include <algorithm>
#include <typeinfo>
#include <vector>

#include "lacuna/sparsity/balanced_mask.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

Positions Set::update_positions(const Parameter& parameter, const Positions& present, float) {
  const Competition selection = competition(parameter);
  const GroupIndex& index = selection.groups();
  const int64_t kept = selection.kept_after_drop(drop_fraction(), present.count());
  Tensor scores = parameter.compacted(parameter.values());
  take_magnitudes(scores.mutable_storage());
  const int64_t wanted = target_nnz(parameter) / index.count();
  Positions stay = selection.keep(present, scores.storage(), kept);
  scores = Tensor();  // an update's peak is in the growth
  if (keeps_alive()) stay = revive_empty(rng(parameter, "/revive"), wanted, stay, index);
  return grow_positions(parameter, stay, wanted);
}

int64_t Set::nnz_after_update(int64_t nnz, int64_t target, int64_t groups, int64_t step,
                              int64_t updates) const {
  if (options().structure.is_nm()) return target;  // cells are pruned and filled
  const int64_t unit = options().structure.unit_size();
  const int64_t kept = kept_after_drop(drop_fraction_at(step, updates), nnz / unit, groups);
  return std::max(kept * groups * unit, target);
}

CounterRng Set::rng(const Parameter& parameter, const char* purpose) const {
  return CounterRng(options().seed, parameter.name() + purpose, static_cast<uint64_t>(step()));
}

BitMask Set::grow(const Parameter& parameter, const BitMask& mask, int64_t per_group) {
  if (options().structure.exists()) {
    return competition(parameter)
        .grow_random(rng(parameter, "/grow"), per_group, Positions::of(parameter.shape(), mask))
        .to_mask();
  }
  return grow_random(rng(parameter, "/grow"), per_group, mask, groups(parameter));
}

Positions Set::grow_positions(const Parameter& parameter, const Positions& kept,
                              int64_t per_group) {
  if (typeid(*this) == typeid(Set)) {  // nobody's `grow` to ask: no mask is needed
    const Competition selection = competition(parameter);
    return selection.grow_random(rng(parameter, "/grow"), per_group * selection.groups().count(),
                                 kept);
  }
  require_bits(parameter);
  return Positions::of(parameter.shape(), grow(parameter, kept.to_mask(), per_group));
}

}  // namespace lacuna
