// GMP: gradual magnitude pruning.
#pragma once

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// On update steps keeps the largest |w| to the target of that step; what is pruned stays pruned.
/// *Source:* Zhu & Gupta, "To prune, or not to prune", 2017 (arXiv:1710.01878).
class Gmp final : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError when the sparsity is a constant (that is `static`), or a drop fraction
  /// is given.
  explicit Gmp(DynamicOptions options);

  std::string_view type() const override { return "gmp"; }

 protected:
  BitMask update_mask(const Parameter& parameter, const BitMask& mask, float sparsity) override;
};

}  // namespace lacuna
