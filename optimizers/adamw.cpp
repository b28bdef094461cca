#include "lacuna/optimizers/adamw.h"

#include "lacuna/optimizers/adam_moments.hpp"

namespace lacuna {

AdamW::AdamW(std::vector<ParameterPtr> parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters), {.lr = options.lr,
                                        .weight_decay = options.weight_decay,
                                        .warmup = options.warmup,
                                        .clip_norm = options.clip_norm,
                                        .no_decay = options.no_decay,
                                        .groups = options.groups}),
      betas_(options.betas),
      eps_(options.eps) {
  require_adam_options(betas_, eps_);
}

std::vector<Optimizer::StateSlot> AdamW::state_slots() const {
  return {{.name = "exp_avg"}, {.name = "exp_avg_sq"}};
}

AdamCoefficients AdamW::coefficients(const Update& update) const {
  AdamCoefficients coefficients =
      adam_coefficients(betas_, eps_, update.learning_rate, update.step);
  coefficients.retain = static_cast<float>(1.0 - update.learning_rate * update.weight_decay);
  return coefficients;
}

void AdamW::update(const Update& update) {
  adam_update(coefficients(update), update.values, update.gradient, update.states[0],
              update.states[1]);
}

bool AdamW::keeps_zeros(const Update& update) const {
  return lacuna::keeps_zeros(coefficients(update));
}

}  // namespace lacuna
