// Static sparsity: a mask made once and kept.
#pragma once

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Prunes before training and never again.
class Static : public SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if the sparsity is not a constant in [0, 1).
  explicit Static(SparsityOptions options);

  std::string_view type() const override { return "static"; }
  void update(Optimizer&) override { count_step(); }

 protected:
  void require_settable(const SparsityTarget& sparsity) const override;
};

}  // namespace lacuna
