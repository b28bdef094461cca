// Adam, with weight decay added to the gradient or applied separately (AdamW).
#pragma once

#include <array>

#include "lacuna/optimizers/optimizer.h"
#include "lacuna/optimizers/regrown.h"

namespace lacuna {

struct AdamCoefficients;

/// Where weight decay is added.
enum class AdamDecay {
  Gradient,   ///< to the gradient: L2
  Decoupled,  ///< to the values, which shrink by lr · weight_decay before Adam's step
};

/// Options as in torch.optim.Adam and torch.optim.AdamW; OptimizerOptions documents fields that all
/// optimizers share.
template <AdamDecay kDecay>
struct AdamFields {
  Schedule lr = 1e-3;
  /// Decay of the running means of the gradient and of its square, each in [0, 1).
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;  ///< added to the root of the mean square, at least 0
  double weight_decay = kDecay == AdamDecay::Gradient ? 0.0 : 1e-2;
  int64_t warmup = 0;
  std::optional<double> clip_norm = std::nullopt;
  std::vector<std::string> no_decay = {};
  std::vector<ParameterGroup> groups = {};
  RegrownWeights regrown = {};  ///< for weights that sparsity algorithms grow
};
using AdamOptions = AdamFields<AdamDecay::Gradient>;
using AdamWOptions = AdamFields<AdamDecay::Decoupled>;

/// m = β₁m + (1 − β₁)g; v = β₂v + (1 − β₂)g²; w −= lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + eps).
/// States: exp_avg (m), exp_avg_sq (v). t counts the updates of each parameter. Use it as `Adam` or
/// `AdamW`. *Errors:* ConfigError on an option out of range. *Sources:* Kingma & Ba, arXiv
/// 1412.6980; Loshchilov & Hutter, arXiv 1711.05101 (AdamW).
///
/// With `regrown.age` Own, t counts the updates of each weight since it was grown; weights that
/// were never grown are trained to the same bits as without this option.
template <AdamDecay kDecay>
class BasicAdam final : public Optimizer {
 public:
  using Options = AdamFields<kDecay>;

  explicit BasicAdam(std::vector<ParameterPtr> parameters, const Options& options = {});
  std::string_view type() const override {
    return kDecay == AdamDecay::Gradient ? "adam" : "adamw";
  }
  UpdateRule update_rule() const override {
    return kDecay == AdamDecay::Gradient ? UpdateRule::Adam : UpdateRule::DecoupledAdam;
  }

 protected:
  std::vector<StateSlot> state_slots() const override;
  void update(const Update& update) override;
  bool keeps_zeros(const Update& update) const override;
  int64_t most_age() const override { return ages_.size(); }

 private:
  AdamCoefficients coefficients(const Update& update) const;

  std::array<double, 2> betas_;
  double eps_;
  AgeTables ages_;
};
using Adam = BasicAdam<AdamDecay::Gradient>;
using AdamW = BasicAdam<AdamDecay::Decoupled>;

extern template class BasicAdam<AdamDecay::Gradient>;
extern template class BasicAdam<AdamDecay::Decoupled>;

}  // namespace lacuna
