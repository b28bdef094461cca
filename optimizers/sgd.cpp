#include "lacuna/optimizers/sgd.h"

#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

Sgd::Sgd(std::vector<ParameterPtr> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), {.lr = options.lr,
                                        .weight_decay = options.weight_decay,
                                        .warmup = options.warmup,
                                        .clip_norm = options.clip_norm,
                                        .no_decay = options.no_decay,
                                        .groups = options.groups}),
      momentum_(options.momentum),
      dampening_(options.dampening),
      nesterov_(options.nesterov) {
  require_option_at_least("momentum", momentum_, 0.0);
  if (nesterov_ && (momentum_ <= 0.0 || dampening_ != 0.0)) {
    throw OptionError("nesterov", "needs momentum above 0 and dampening 0");
  }
}

std::vector<Optimizer::StateSlot> Sgd::state_slots() const {
  if (momentum_ == 0.0) return {};
  return {{.name = "momentum_buffer"}};
}

SgdCoefficients Sgd::coefficients(const Update& update) const {
  return {.learning_rate = static_cast<float>(update.learning_rate),
          .weight_decay = static_cast<float>(update.weight_decay),
          .momentum = static_cast<float>(momentum_),
          .gradient_scale = update.step == 1 ? 1.0f : static_cast<float>(1.0 - dampening_),
          .is_nesterov = nesterov_};
}

void Sgd::update(const Update& update) {
  sgd_update(coefficients(update), update.values, update.gradient,
             update.states.empty() ? std::span<float>() : update.states[0]);
}

bool Sgd::keeps_zeros(const Update& update) const {
  return lacuna::keeps_zeros(coefficients(update));
}

}  // namespace lacuna
