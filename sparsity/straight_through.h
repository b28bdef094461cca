// Straight-through GMP: a dense shadow weight is trained, its largest part is used.
#pragma once

#include <vector>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// The forward uses the shadow weight's largest |w|, chosen anew at every update step; the dense
/// gradient with respect to that sparse weight goes straight through to the dense shadow weight,
/// which the optimizer trains with dense states. So what was pruned can come back. The parameters
/// collect no gradient of their own between backward and step.
/// *Sources:* Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013
/// (arXiv:1308.3432); Lin et al., "Dynamic model pruning with feedback", 2020 (arXiv:2006.07253),
/// equation 2, with the mask of gradual magnitude pruning. *Cost:* dense gradient and states.
class StraightThrough : public DynamicSparsityAlgorithm {
 public:
  /// *Errors:* ConfigError when a drop fraction is given.
  explicit StraightThrough(DynamicOptions options);

  ~StraightThrough() override;

  std::string_view type() const override { return "ste"; }
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  bool wants_dense_gradient(int64_t) const override { return true; }
  DenseGradient::Use use_of_dense_gradient() const override { return DenseGradient::Use::Instead; }
  /// Lays the shadow weight and the dense gradient out for the optimizer.
  void before_step(Optimizer& optimizer) override;
  /// Stores the shadow weight, and puts its sparse part back in its place.
  void after_step(Optimizer& optimizer) override;
  BitMask update_mask(const Parameter& parameter, const BitMask& mask, float sparsity) override;
  void on_apply(Module& module) override;
  /// The dense shadow weight.
  static const Tensor& master(const Parameter& parameter);
  Tensor master_of(const Parameter& parameter) const override { return master(parameter); }
  /// Makes of the dense gradient what the optimizer shall see.
  virtual void adjust_gradient(const Parameter& /*parameter*/, Tensor& /*gradient*/) const {}
  void release() override;

 private:
  std::vector<PatternPtr> patterns_;  // of the parameters, while the optimizer works on the shadows
};

}  // namespace lacuna
