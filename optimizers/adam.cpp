#include "lacuna/optimizers/adam.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/kernels/pointwise/aged_adam.hpp"
#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

template <AdamDecay kDecay>
BasicAdam<kDecay>::BasicAdam(std::vector<ParameterPtr> parameters, const Options& options)
    : Optimizer(std::move(parameters), {.lr = options.lr,
                                        .weight_decay = options.weight_decay,
                                        .warmup = options.warmup,
                                        .clip_norm = options.clip_norm,
                                        .no_decay = options.no_decay,
                                        .groups = options.groups}),
      betas_(options.betas),
      eps_(options.eps) {
  for (const double beta : betas_) require_option_fraction("betas", beta);
  require_option_at_least("eps", eps_, 0.0);
  ages_ = AgeTables(options.regrown, betas_);
}

template <AdamDecay kDecay>
std::vector<Optimizer::StateSlot> BasicAdam<kDecay>::state_slots() const {
  return {{.name = "exp_avg"}, {.name = "exp_avg_sq"}};
}

// Bias corrections are computed in double precision, as PyTorch does.
template <AdamDecay kDecay>
AdamCoefficients BasicAdam<kDecay>::coefficients(const Update& update) const {
  const auto step = static_cast<double>(update.step);
  const double correction1 = 1.0 - std::pow(betas_[0], step);
  const double correction2 = 1.0 - std::pow(betas_[1], step);
  AdamCoefficients coefficients{.beta1 = static_cast<float>(betas_[0]),
                                .one_minus_beta1 = static_cast<float>(1.0 - betas_[0]),
                                .beta2 = static_cast<float>(betas_[1]),
                                .one_minus_beta2 = static_cast<float>(1.0 - betas_[1]),
                                .step_size = static_cast<float>(update.learning_rate / correction1),
                                .root_scale = static_cast<float>(1.0 / std::sqrt(correction2)),
                                .eps = static_cast<float>(eps_ * update.eps_factor)};
  if (kDecay == AdamDecay::Gradient) {
    coefficients.l2 = static_cast<float>(update.weight_decay);
  } else {
    coefficients.retain = static_cast<float>(1.0 - update.learning_rate * update.weight_decay);
  }
  return coefficients;
}

template <AdamDecay kDecay>
void BasicAdam<kDecay>::update(const Update& update) {
  const AdamCoefficients c = coefficients(update);
  if (update.ages.empty()) {
    adam_update(c, update.values, update.gradient, update.states[0], update.states[1]);
    return;
  }
  const bool is_own = !ages_.root_scales.empty();
  const AgedFactors factors{
      .step_scales = ages_.step_scales,
      .root_scales = ages_.root_scales,
      .step = is_own ? static_cast<float>(update.learning_rate) : c.step_size,
      .shared_from = static_cast<int32_t>(std::min(update.step, ages_.size()))};
  aged_adam_update(c, factors, update.values, update.gradient, update.states[0], update.states[1],
                   update.ages);
}

template <AdamDecay kDecay>
bool BasicAdam<kDecay>::keeps_zeros(const Update& update) const {
  return lacuna::keeps_zeros(coefficients(update));
}

template class BasicAdam<AdamDecay::Gradient>;
template class BasicAdam<AdamDecay::Decoupled>;

}  // namespace lacuna
