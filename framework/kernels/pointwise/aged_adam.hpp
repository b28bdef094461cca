// Adam's inner loop where each weight has an age of its own: the updates since it was grown.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

/// What Adam's factors are for a weight of an age, this update included. Weights whose age is at
/// least `shared_from` have the parameter's own (AdamCoefficients), bit for bit those of
/// adam_update.
struct AgedFactors {
  /// By age, up to the largest that differs: factor of `step`. Index 0 is not used.
  std::span<const float> step_scales;
  /// By age, in the place of the parameter's; empty: the parameter's.
  std::span<const float> root_scales;
  float step = 0.0f;
  int32_t shared_from = 0;  ///< at most the size of the tables
};

/// As adam_update; each age is counted up first, to at most the size of the tables, where it stays.
/// *Requires* ages up to that size, and tables of equal sizes from 1 to 65535.
/// *Cost:* 4 bytes an element more than adam_update's 28; two gathers for a vector that holds a
/// weight below `shared_from`.
void aged_adam_update(const AdamCoefficients& coefficients, const AgedFactors& factors,
                      std::span<float> values, std::span<const float> gradient,
                      std::span<float> exp_avg, std::span<float> exp_avg_sq,
                      std::span<uint16_t> ages);

}  // namespace lacuna
