// AC/DC: alternating compressed and decompressed training.
#pragma once

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// Dense until the first update, or with the masks that it inherits; then updates alternate: one
/// prunes to the target by |w|, the next makes everything dense again (restored weights start at
/// zero), and so on. A run should end compressed: the plan refuses one that does not. *Source:*
/// Peste et al., "AC/DC: alternating compressed/decompressed training of deep neural networks",
/// 2021 (arXiv:2106.12379), algorithm 1.
class AcDc : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if the sparsity is not constant, or a drop fraction is given.
  explicit AcDc(DynamicOptions options);

  std::string_view type() const override { return "acdc"; }
  FirstMasks first_masks() const override { return FirstMasks::Dense; }
  /// An odd number of updates, every 5 % of the run until 75 %, so that it ends compressed.
  UpdateSchedule default_updates(int64_t steps) const override;
  void forecast(Forecast& forecast) const override;

 protected:
  void require_settable(const SparsityTarget& sparsity) const override;
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
};

}  // namespace lacuna
