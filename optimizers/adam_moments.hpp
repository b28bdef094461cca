// What Adam and AdamW share: checking their options, and one step's coefficients.
#pragma once

#include <array>
#include <cstdint>

#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

/// *Errors:* ConfigError unless both betas are in [0, 1) and eps is at least 0.
void require_adam_options(const std::array<double, 2>& betas, double eps);

/// The coefficients of a parameter's update number `step` (from 1), without weight decay. Bias
/// corrections are computed in double precision, as PyTorch does.
AdamCoefficients adam_coefficients(const std::array<double, 2>& betas, double eps,
                                   double learning_rate, int64_t step);

}  // namespace lacuna
