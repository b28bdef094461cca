// Dynamic sparsity whose growth is chosen: at random, by the gradient, or a part by each.
#pragma once

#include "lacuna/sparsity/set.h"

namespace lacuna {

/// Drops the smallest |w| and grows a share of what is missing where the |dense gradient| is
/// largest, then the rest at random among the positions that are left. With a share of 0 it is Set,
/// with 1 RigL, to the same masks. The share counts whole units of the pattern in each score group,
/// rounded down. *Cost:* of an update that of RigL, or, with a share of 0, of Set.
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
