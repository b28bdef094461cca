// The losses and their derivatives in plain C++ on any value type.
#pragma once

#include <cstdint>

#include "lacuna/framework/kernels/rowwise/loss.h"
#include "lacuna/framework/kernels/rowwise/softmax_reference.h"

namespace lacuna::reference {

/// Σ (a − b)².
template <class Sum, class T>
Sum sum_squared_difference(const T* a, const T* b, int64_t count) {
  Sum total = Sum(0);
  for (int64_t i = 0; i < count; ++i) total += Sum((a[i] - b[i]) * (a[i] - b[i]));
  return total;
}

template <class T>
void scaled_difference(T factor, const T* a, const T* b, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = factor * (a[i] - b[i]);
}

/// Loss of one example: log Σ e^x − (1 − ε) x_label − ε ⟨x⟩.
template <class T>
T cross_entropy(const T* x, int64_t classes, int64_t label, double smoothing) {
  const ExponentialSum<T> sum(x, classes);
  T loss = sum.largest + std::log(sum.total) - T(1.0 - smoothing) * x[label];
  if (smoothing > 0.0) {  // else an infinite logit would make 0 · ∞ of it
    for (int64_t j = 0; j < classes; ++j)
      loss -= T(smoothing / static_cast<double>(classes)) * x[j];
  }
  return loss;
}

/// Derivative of one example's loss, times `factor`.
template <class T>
void cross_entropy_gradient(const T* x, int64_t classes, int64_t label, double smoothing, T factor,
                            T* dx) {
  const ExponentialSum<T> sum(x, classes);
  const T floor = T(smoothing / static_cast<double>(classes));
  for (int64_t j = 0; j < classes; ++j) {
    const T target = j == label ? T(1.0 - smoothing) + floor : floor;
    dx[j] = factor * (sum.probability(x[j]) - target);
  }
}

}  // namespace lacuna::reference
