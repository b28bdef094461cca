// SET: sparse evolutionary training.
#pragma once

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// Drops the smallest |w| among the active by `drop_fraction`, then grows back to the target: at
/// random here; an algorithm that grows otherwise overrides `grow`.
/// *Source:* Mocanu et al., "Scalable training of artificial neural networks with adaptive sparse
/// connectivity", 2018 (arXiv:1707.04780).
class Set : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;

  std::string_view type() const override { return "set"; }

 protected:
  BitMask update_mask(const Parameter& parameter, const BitMask& mask, float sparsity) final;
  bool uses_drop_fraction() const override { return true; }
  int64_t nnz_after_update(int64_t nnz, int64_t target, int64_t groups, int64_t step,
                           int64_t updates) const override;
  /// `mask` with positions added until each group has `per_group`.
  virtual BitMask grow(const Parameter& parameter, const BitMask& mask, int64_t per_group);
};

}  // namespace lacuna
