// Straight-through training: a dense master weight is trained, a part of it is used.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// The forward uses the master weight's largest |w|, chosen anew at every update step; the dense
/// gradient with respect to that sparse weight goes straight through to the dense master, which the
/// optimizer trains with dense states. So what was pruned can come back. The parameters collect no
/// gradient of their own between backward and step. Base of algorithms that choose another part.
/// *Sources:* Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013
/// (arXiv:1308.3432); Lin et al., "Dynamic model pruning with feedback", 2020 (arXiv:2006.07253),
/// equation 2, with the mask of gradual magnitude pruning. *Cost:* dense gradient and states.
class StraightThrough : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError when a drop fraction is given.
  explicit StraightThrough(DynamicOptions options);

  std::string_view type() const override { return "ste"; }
  /// A schedule that begins at 0 begins dense, unless `init_method` says otherwise.
  FirstMasks first_masks() const override {
    return begins_sparse() ? FirstMasks::Made : FirstMasks::Own;
  }
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;

 protected:
  /// For a part that is chosen anew every `every` steps; what the parameters are when they are let
  /// go. `options` are without an update schedule. *Errors:* ConfigError, which begins with `type`,
  /// when `every` is below 1.
  StraightThrough(const std::string& type, DynamicOptions options, int64_t every,
                  MasterWeight::Remains remains);

  bool wants_dense_gradient(int64_t) const override { return true; }
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  void before_step(Optimizer& optimizer, StepScopes& scopes) override;
  /// Lets the optimizer train a weight's master by a dense gradient in this step.
  void train_master(SparseWeight& weight, Tensor gradient, StepScopes& scopes);

 private:
  MasterWeight::Remains remains_;
};

}  // namespace lacuna
