// Dynamic sparsity with a choice of growth: at random, by the gradient, or partly by each.
#pragma once

#include "lacuna/sparsity/set.h"

namespace lacuna {

/// Drops the smallest |w|, then grows a share of the missing positions where the |dense gradient|
/// is largest, and the rest at random among the remaining positions. With a share of 0 the masks
/// equal those of Set, with 1 those of RigL. The share counts whole units of the pattern in each
/// score group, rounded down. *Cost:* an update costs as much as in RigL, or, with a share of 0, as
/// in Set.
class GrowByChoice final : public Set {
 public:
  struct Options {
    DynamicOptions common = {};
    double gradient_share = 0.0;  ///< in [0, 1]
  };

  /// *Errors:* ConfigError on a share out of range, and on one between 0 and 1 with N:M, whose
  /// cells are filled by one rule.
  explicit GrowByChoice(Options options);

  std::string_view type() const override { return "dynamic"; }

 protected:
  bool wants_dense_gradient(int64_t step) const override;
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override;

 private:
  double gradient_share_;
};

}  // namespace lacuna
