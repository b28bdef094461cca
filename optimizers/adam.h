// Adam, with weight decay as a part of the gradient.
#pragma once

#include <array>

#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

struct AdamCoefficients;

/// As torch.optim.Adam; fields that all optimizers share are told in OptimizerOptions.
struct AdamOptions {
  Schedule lr = 1e-3;
  /// Decay of the running means of the gradient and of its square, each in [0, 1).
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;          ///< added to the root of the mean square, at least 0
  double weight_decay = 0.0;  ///< added to the gradient times the value (L2)
  int64_t warmup = 0;
  std::optional<double> clip_norm = std::nullopt;
  std::vector<std::string> no_decay = {};
  std::vector<ParameterGroup> groups = {};
};

/// m = β₁m + (1 − β₁)g; v = β₂v + (1 − β₂)g²; w −= lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + eps).
/// States: exp_avg (m), exp_avg_sq (v). t counts the updates of each parameter. *Errors:*
/// ConfigError on an option out of range. *Source:* Kingma & Ba, arXiv 1412.6980.
class Adam final : public Optimizer {
 public:
  explicit Adam(std::vector<ParameterPtr> parameters, const AdamOptions& options = {});
  std::string_view type() const override { return "adam"; }

 protected:
  std::vector<StateSlot> state_slots() const override;
  void update(const Update& update) override;
  bool keeps_zeros(const Update& update) const override;

 private:
  AdamCoefficients coefficients(const Update& update) const;

  std::array<double, 2> betas_;
  double eps_;
};

}  // namespace lacuna
