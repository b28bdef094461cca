// The optimizer updates as plain loops over any value type: they check the vectorized ones, and run
// if the instruction set is `reference`.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "lacuna/framework/kernels/pointwise/optimizer_update.hpp"

namespace lacuna {

/// As sgd_update, on one thread.
template <class T>
void sgd_update_reference(const SgdCoefficients& coefficients, std::span<T> values,
                          std::span<const T> gradient, std::span<T> buffer) {
  const T learning_rate = coefficients.learning_rate, weight_decay = coefficients.weight_decay;
  const T momentum = coefficients.momentum, gradient_scale = coefficients.gradient_scale;
  for (size_t i = 0; i < values.size(); ++i) {
    T step = gradient[i] + weight_decay * values[i];
    if (!buffer.empty()) {
      buffer[i] = momentum * buffer[i] + gradient_scale * step;
      step = coefficients.is_nesterov ? step + momentum * buffer[i] : buffer[i];
    }
    values[i] -= learning_rate * step;
  }
}

/// As adam_update, on one thread.
template <class T>
void adam_update_reference(const AdamCoefficients& coefficients, std::span<T> values,
                           std::span<const T> gradient, std::span<T> exp_avg,
                           std::span<T> exp_avg_sq) {
  const T retain = coefficients.retain, l2 = coefficients.l2, eps = coefficients.eps;
  const T beta1 = coefficients.beta1, one_minus_beta1 = coefficients.one_minus_beta1;
  const T beta2 = coefficients.beta2, one_minus_beta2 = coefficients.one_minus_beta2;
  const T step_size = coefficients.step_size, root_scale = coefficients.root_scale;
  for (size_t i = 0; i < values.size(); ++i) {
    const T w = retain * values[i];
    const T g = gradient[i] + l2 * w;
    exp_avg[i] = beta1 * exp_avg[i] + one_minus_beta1 * g;
    exp_avg_sq[i] = beta2 * exp_avg_sq[i] + one_minus_beta2 * (g * g);
    values[i] = w - step_size * (exp_avg[i] / (std::sqrt(exp_avg_sq[i]) * root_scale + eps));
  }
}

}  // namespace lacuna
