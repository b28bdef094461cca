// AdamW: Adam with weight decay apart from the gradient.
#pragma once

#include <array>

#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

struct AdamCoefficients;

/// As torch.optim.AdamW; fields that all optimizers share are told in OptimizerOptions.
struct AdamWOptions {
  Schedule lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};  ///< as in AdamOptions
  double eps = 1e-8;                           ///< as in AdamOptions
  /// The values shrink by lr · weight_decay at every step, before Adam's step.
  double weight_decay = 1e-2;
  int64_t warmup = 0;
  std::optional<double> clip_norm = std::nullopt;
  std::vector<std::string> no_decay = {};
  std::vector<ParameterGroup> groups = {};
};

/// w *= 1 − lr · weight_decay, then Adam's step without weight decay. States and errors are those
/// of Adam. *Source:* Loshchilov & Hutter, arXiv 1711.05101.
class AdamW final : public Optimizer {
 public:
  explicit AdamW(std::vector<ParameterPtr> parameters, const AdamWOptions& options = {});
  std::string_view type() const override { return "adamw"; }

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
