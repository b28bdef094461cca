// Adam's inner loop if each weight has its own age: the number of updates since it was grown.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

/// Adam's factors by the age of a weight, including this update. Weights of age
/// `shared_from` or more have the parameter's factors (AdamCoefficients), bit for bit those
/// of adam_update.
struct AgedFactors {
  /// By age, up to the largest that differs: the factor of `step`. Index 0 is not used.
  std::span<const float> step_scales;
  /// By age, in place of the parameter's factors; empty: the parameter's.
  std::span<const float> root_scales;
  float step = 0.0f;
  int32_t shared_from = 0;  ///< at most the size of the tables
};

/// As adam_update. Each age is first incremented, but not beyond the size of the tables. *Requires*
/// ages up to that size, and tables of equal sizes from 1 to 65535. *Cost:* 4 bytes per element
/// more than adam_update's 28; two gathers for a vector that holds a weight of an age below
/// `shared_from`.
void aged_adam_update(const AdamCoefficients& coefficients, const AgedFactors& factors,
                      std::span<float> values, std::span<const float> gradient,
                      std::span<float> exp_avg, std::span<float> exp_avg_sq,
                      std::span<uint16_t> ages);

}  // namespace lacuna
