// Adam's update of weights with ages as a plain loop over any value type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lacuna/framework/kernels/pointwise/aged_adam.hpp"
#include "lacuna/framework/kernels/pointwise/optimizer_update_reference.hpp"

namespace lacuna {

/// As aged_adam_update, on one thread.
template <class T>
void aged_adam_update_reference(const AdamCoefficients& coefficients, const AgedFactors& factors,
                                std::span<T> values, std::span<const T> gradient,
                                std::span<T> exp_avg, std::span<T> exp_avg_sq,
                                std::span<uint16_t> ages) {
  const size_t most = factors.step_scales.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t age = std::min<size_t>(size_t{ages[i]} + 1, most);
    ages[i] = static_cast<uint16_t>(age);
    AdamCoefficients own = coefficients;
    if (age < static_cast<size_t>(factors.shared_from)) {
      own.step_size = factors.step * factors.step_scales[age];
      if (!factors.root_scales.empty()) own.root_scale = factors.root_scales[age];
    }
    adam_update_reference<T>(own, values.subspan(i, 1), gradient.subspan(i, 1),
                             exp_avg.subspan(i, 1), exp_avg_sq.subspan(i, 1));
  }
}

}  // namespace lacuna
