#include "lacuna/optimizers/adam_moments.hpp"

#include <cmath>

#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

void require_adam_options(const std::array<double, 2>& betas, double eps) {
  for (const double beta : betas) require_option_fraction("betas", beta);
  require_option_at_least("eps", eps, 0.0);
}

AdamCoefficients adam_coefficients(const std::array<double, 2>& betas, double eps,
                                   double learning_rate, int64_t step) {
  const double correction1 = 1.0 - std::pow(betas[0], static_cast<double>(step));
  const double correction2 = 1.0 - std::pow(betas[1], static_cast<double>(step));
  return {.beta1 = static_cast<float>(betas[0]),
          .one_minus_beta1 = static_cast<float>(1.0 - betas[0]),
          .beta2 = static_cast<float>(betas[1]),
          .one_minus_beta2 = static_cast<float>(1.0 - betas[1]),
          .step_size = static_cast<float>(learning_rate / correction1),
          .root_scale = static_cast<float>(1.0 / std::sqrt(correction2)),
          .eps = static_cast<float>(eps)};
}

}  // namespace lacuna
