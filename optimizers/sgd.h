// Stochastic gradient descent.
#pragma once

#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

struct SgdCoefficients;

/// Options as in torch.optim.SGD; OptimizerOptions documents fields that all optimizers share.
struct SgdOptions {
  Schedule lr;  ///< required
  /// Share of the last step's direction that is kept, at least 0. 0: no state is kept.
  double momentum = 0.0;
  double dampening = 0.0;  ///< the part of a gradient that does not enter the momentum
  double weight_decay = 0.0;
  /// Uses the gradient after the momentum's part of the step (Nesterov). Requires momentum > 0 and
  /// dampening = 0.
  bool nesterov = false;
  int64_t warmup = 0;
  std::optional<double> clip_norm = std::nullopt;
  std::vector<std::string> no_decay = {};
  std::vector<ParameterGroup> groups = {};
};

/// d = gradient + weight_decay · w; buffer = momentum · buffer + (1 − dampening) · d, at first d;
/// w −= lr · buffer. State: momentum_buffer. *Errors:* ConfigError on an option out of range.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<ParameterPtr> parameters, const SgdOptions& options);
  std::string_view type() const override { return "sgd"; }
  UpdateRule update_rule() const override { return UpdateRule::Gradient; }

 protected:
  std::vector<StateSlot> state_slots() const override;
  void update(const Update& update) override;
  bool keeps_zeros(const Update& update) const override;

 private:
  SgdCoefficients coefficients(const Update& update) const;

  double momentum_;
  double dampening_;
  bool nesterov_;
};

}  // namespace lacuna
