// The optimizers' inner loops: one fused pass over a parameter's values, gradient and states. The
// caller has folded schedules, groups and step counts into the coefficients.
#pragma once

#include <span>

namespace lacuna {

/// One step of stochastic gradient descent:
///     d = gradient + weight_decay · values
///     buffer = momentum · buffer + gradient_scale · d
///     values = values − learning_rate · (is_nesterov ? d + momentum · buffer : buffer)
struct SgdCoefficients {
  float learning_rate = 0.0f;
  float weight_decay = 0.0f;
  float momentum = 0.0f;
  float gradient_scale = 1.0f;  ///< 1 − dampening; 1 at the first step, whose buffer is d itself
  bool is_nesterov = false;
};

/// One step of Adam, with weight decay added to the gradient (l2) or applied separately (retain):
///     w = retain · values,  g = gradient + l2 · w
///     exp_avg = beta1 · exp_avg + one_minus_beta1 · g
///     exp_avg_sq = beta2 · exp_avg_sq + one_minus_beta2 · g²
///     values = w − step_size · exp_avg / (√exp_avg_sq · root_scale + eps)
struct AdamCoefficients {
  float retain = 1.0f;  ///< 1 − learning rate · weight decay in AdamW, 1 in Adam
  float l2 = 0.0f;      ///< weight decay in Adam, 0 in AdamW
  float beta1 = 0.0f;
  float one_minus_beta1 = 0.0f;
  float beta2 = 0.0f;
  float one_minus_beta2 = 0.0f;
  float step_size = 0.0f;   ///< learning rate / (1 − beta1^t)
  float root_scale = 0.0f;  ///< 1 / √(1 − beta2^t)
  float eps = 0.0f;
};

/// Both functions update in place, element by element. The result does not depend on the place in
/// the array or the number of threads. *Requires* spans of one length that do not overlap. *Cost:*
/// one pass over memory on several threads; no allocation.
///
/// An empty `buffer` means no momentum: values − learning_rate · d.
void sgd_update(const SgdCoefficients& coefficients, std::span<float> values,
                std::span<const float> gradient, std::span<float> buffer);
void adam_update(const AdamCoefficients& coefficients, std::span<float> values,
                 std::span<const float> gradient, std::span<float> exp_avg,
                 std::span<float> exp_avg_sq);

/// Whether the update leaves elements unchanged whose value, gradient and states are all zero: all
/// coefficients are finite, and eps is not zero.
bool keeps_zeros(const SgdCoefficients& coefficients);
bool keeps_zeros(const AdamCoefficients& coefficients);

/// Σ values², in double precision and in an order that does not depend on the number of threads.
/// *Cost:* one pass; allocates a double for every 16384 elements.
double sum_of_squares(std::span<const float> values);
/// values = factor · values.
void scale(float factor, std::span<float> values);

}  // namespace lacuna
