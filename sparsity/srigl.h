// SRigL: RigL with a constant fan-in, and neurons that it ablates.
#pragma once

#include <string>
#include <vector>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// Like RigL, but every active row (neuron, filter) has the same number of nonzeros, k, and rows in
/// which too few weights are salient have none (they are *ablated*). The salient weights are those
/// that RigL would have after the update: the largest |w| that a drop leaves, and as many positions
/// of the largest |dense gradient| as it drops. A row with fewer than max(1, ⌊min_salient · k₀⌋) of
/// them, with k₀ = target / rows, rounded and at least 1, is ablated, and becomes active again once
/// it has enough. The active rows share the target, k = target / active, rounded, so ablation makes
/// the others denser. Each row keeps at most k of the weights that the drop leaves, and grows to k
/// where its |gradient| is largest.
///
/// At least ⌈target / columns⌉ rows, those with the most salient weights, stay active, and all rows
/// of the model's last weight (or of all tiles of a last layer in tiles), which are its outputs.
/// *Source:* Lasby et al., "Dynamic sparse training with structured sparsity", 2024
/// (arXiv:2305.02299), section 3.1; the treatment of the last layer, and the rounding, as in the
/// authors' program. *Cost:* an update computes RigL's dense gradient twice.
class SRigL final : public DynamicSparsityAlgorithm {
 public:
  struct Options {
    DynamicOptions common = {};
    double min_salient = 0.3;  ///< γ_sal, in [0, 1]; 0: no row is ablated
  };

  /// *Errors:* ConfigError on a fraction out of range, and with groups, a pattern, keep_alive or an
  /// init method other than random, topk or inherit.
  explicit SRigL(Options options);

  std::string_view type() const override { return "srigl"; }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  void forecast(Forecast& forecast) const override;

 protected:
  bool wants_dense_gradient(int64_t step) const override;
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  int64_t nnz_after_update(const MaskSelector& selector, int64_t nnz, int64_t target,
                           float drop_fraction) const override;

 private:
  std::vector<bool> active_rows(const SparseWeight& weight, const MaskSet& salient) const;

  double min_salient_;
  std::vector<std::string> outputs_;  // the model's last weight, or its tiles
};

}  // namespace lacuna
