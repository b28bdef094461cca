// SNIP: single-shot pruning at initialization.
#pragma once

#include <optional>
#include <vector>

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Trains dense, or with inherited masks, up to the first step's backward, then keeps the positions
/// with the largest connection sensitivities |g·w| for the rest of the run. All parameters compete
/// together, as in the paper, unless a distribution or groups are given: then each has its own
/// count. *Source:* Lee et al., "SNIP: single-shot network pruning based on connection
/// sensitivity", 2019 (arXiv:1810.02340), equations 5 and 6; the normalization by the sum does not
/// change the order.
class Snip final : public SparsityAlgorithm {
 public:
  /// `global`: one competition over all parameters.
  struct Options {
    SparsityOptions common = {};
    bool global = true;
  };

  /// *Errors:* ConfigError if the sparsity is not a constant in [0, 1), or if `global` is combined
  /// with a pattern.
  explicit Snip(Options options);

  std::string_view type() const override { return "snip"; }
  FirstMasks first_masks() const override { return FirstMasks::Dense; }
  void update(Optimizer&) override { count_step(); }
  void forecast(Forecast& forecast) const override;

 protected:
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  void before_step(Optimizer& optimizer, StepScopes& scopes) override;

 private:
  /// The number of elements that stay.
  int64_t global_count(int64_t numel) const;
  std::vector<int64_t> choose_counts(const std::vector<Tensor>& scores) const;

  bool global_;
};

}  // namespace lacuna
