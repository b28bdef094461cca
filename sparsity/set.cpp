#include "lacuna/sparsity/set.h"

#include <algorithm>

namespace lacuna {

MaskSet Set::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  const MaskSelector& select = weight.selector();
  const int64_t count = select.kept_after_drop(drop_fraction(), mask.count());
  MaskSet kept = select.keep(mask, weight.magnitudes().storage(), count);
  if (keeps_alive()) kept = select.revive_empty(rng(weight, "/revive"), weight.target_nnz(), kept);
  return grow(weight, kept, weight.target_nnz());
}

MaskSet Set::grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) {
  return weight.selector().grow_random(rng(weight, "/grow"), count, kept);
}

int64_t Set::nnz_after_update(const MaskSelector& selector, int64_t nnz, int64_t target,
                              float drop_fraction) const {
  // Groups are pruned to n and filled again, whatever a schedule says.
  const PatternShape& pattern = selector.pattern();
  if (pattern.is_nm()) return selector.shape().numel() / pattern.m() * pattern.n();
  return std::max(selector.kept_after_drop(drop_fraction, nnz), target);
}

}  // namespace lacuna
