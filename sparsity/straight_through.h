// Straight-through training: trains a dense master weight, of which the forward pass uses a part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// The forward uses the master weight's largest |w|, chosen again at every update step; the dense
/// gradient with respect to that sparse weight goes straight through to the dense master, which the
/// optimizer trains with dense states. So pruned weights can return. The parameters collect no
/// gradient of their own between backward and step. Base of algorithms that use another part.
/// *Sources:* Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013
/// (arXiv:1308.3432); Lin et al., "Dynamic model pruning with feedback", 2020 (arXiv:2006.07253),
/// equation 2, with the mask of gradual magnitude pruning. *Cost:* dense gradient and states.
class StraightThrough : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if a drop fraction is given.
  explicit StraightThrough(DynamicOptions options);

  std::string_view type() const override { return "ste"; }
  /// A schedule that begins at 0 begins dense, unless `init_method` is set.
  FirstMasks first_masks() const override;
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;

 protected:
  /// The positions of a master that are used.
  using Part = std::function<MaskSet(const SparseWeight& weight)>;
  /// For a part that is chosen at the start and every `every` steps, and the state of the
  /// parameters after they are released. `options` have no update schedule. *Errors:* ConfigError,
  /// which begins with `type`, if `every` is below 1.
  StraightThrough(const std::string& type, DynamicOptions options, int64_t every,
                  MasterWeight::Remains remains, Part part);

  bool wants_dense_gradient(int64_t) const override { return true; }
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  void before_step(Optimizer& optimizer, StepScopes& scopes) override;
  /// Adds to the gradient that trains a master; by default nothing.
  virtual void add_to_gradient(const SparseWeight& /*weight*/, Tensor& /*gradient*/) const {}

 private:
  MasterWeight::Remains remains_;
  Part part_;
  bool begins_with_part_;  // else with the masks of the init method
};

}  // namespace lacuna
