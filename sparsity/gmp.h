// GMP: gradual pruning by magnitude, or by saliency.
#pragma once

#include <string>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// On update steps keeps the largest |w|, as many as the target of that step; pruned weights stay
/// pruned. *Source:* Zhu & Gupta, "To prune, or not to prune", 2017 (arXiv:1710.01878).
class Gmp : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if the sparsity is a constant (use `static`), or if a drop fraction is
  /// given.
  explicit Gmp(DynamicOptions options);

  std::string_view type() const override { return "gmp"; }
  /// A schedule that begins at 0 begins dense, unless `init_method` is set.
  FirstMasks first_masks() const override;

  /// *Errors:* also ConfigError if the sparsity at the last update is below an earlier one.
  void forecast(Forecast& forecast) const override;

 protected:
  /// The scores of which pruning keeps the largest: one per position of the weight's mask,
  /// ascending by flat index.
  using Scores = Tensor (*)(const SparseWeight& weight);
  void require_settable(const SparsityTarget& sparsity) const override;
  /// For a subclass that prunes by other scores; messages use its name.
  Gmp(DynamicOptions options, const std::string& type, Scores scores);
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  int64_t nnz_after_update(const MaskSelector& selector, int64_t nnz, int64_t target,
                           float drop_fraction) const override;

 private:
  Scores scores_;
};

/// GMP that keeps the largest |w·g| instead of |w|: the first-order estimate of how much the loss
/// changes when the weight becomes zero. g is the gradient of the update step.
/// *Source:* Molchanov et al., "Pruning convolutional neural networks for resource efficient
/// inference", 2017 (arXiv:1611.06440), equation 8, for single weights.
class Saliency : public Gmp {
 public:
  /// *Errors:* ConfigError, as Gmp; an update throws StateError if a parameter has no gradient.
  explicit Saliency(DynamicOptions options);

  std::string_view type() const override { return "saliency"; }
};

}  // namespace lacuna
