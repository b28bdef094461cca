// SET: sparse evolutionary training.
#pragma once

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// Drops the smallest |w| among the active by `drop_fraction`, then grows back to the target: at
/// random here; an algorithm that grows otherwise overrides `grow`, or, for parameters of any size,
/// `grow_positions`.
/// *Source:* Mocanu et al., "Scalable training of artificial neural networks with adaptive sparse
/// connectivity", 2018 (arXiv:1707.04780).
class Set : public DynamicPatternAlgorithm {
 public:
  using DynamicPatternAlgorithm::DynamicPatternAlgorithm;

  std::string_view type() const override { return "set"; }

 protected:
  Positions update_positions(const Parameter& parameter, const Positions& present,
                             float sparsity) final;
  bool uses_drop_fraction() const override { return true; }
  int64_t nnz_after_update(int64_t nnz, int64_t target, int64_t groups, int64_t step,
                           int64_t updates) const override;
  /// `mask` with positions added until each group has `per_group`.
  virtual BitMask grow(const Parameter& parameter, const BitMask& mask, int64_t per_group);
  /// The pattern-level hook below it: `kept` with positions added until each group has `per_group`.
  /// By default asks `grow`, but for Set itself. *Errors:* StateError where a mask would have more
  /// than 2^32 bits.
  virtual Positions grow_positions(const Parameter& parameter, const Positions& kept,
                                   int64_t per_group);

 private:
  CounterRng rng(const Parameter& parameter) const;
};

}  // namespace lacuna
