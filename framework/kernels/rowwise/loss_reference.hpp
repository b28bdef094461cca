// The losses and their derivatives in plain C++ on any value type.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lacuna/framework/kernels/rowwise/loss.hpp"
#include "lacuna/framework/kernels/rowwise/softmax_reference.hpp"

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

/// Shares of the classes in an example's loss: floor · w_j for class j, plus `label` for the label;
/// `total` is their sum.
struct ClassShares {
  double floor = 0.0;
  double label = 1.0;
  double total = 1.0;
  const float* weights = nullptr;  ///< null: 1 each

  ClassShares(int64_t classes, double smoothing, const float* class_weights, double weight_sum,
              int64_t of_label)
      : floor(smoothing / static_cast<double>(classes)),
        label(1.0 - smoothing),
        weights(class_weights) {
    if (weights == nullptr) return;
    label *= weights[of_label];
    total = label + floor * weight_sum;
  }
};

/// Loss of one example: Σ t · log Σ e^x − Σ_j t_j x_j, with the shares t.
template <class T>
T cross_entropy(const T* x, int64_t classes, int64_t label, const ClassShares& shares) {
  const ExponentialSum<T> sum(x, classes);
  T loss = T(shares.total) * (sum.largest + std::log(sum.total)) - T(shares.label) * x[label];
  if (shares.floor > 0.0) {  // else an infinite logit would make 0 · ∞ of it
    for (int64_t j = 0; j < classes; ++j) {
      const double weight = shares.weights == nullptr ? 1.0 : shares.weights[j];
      loss -= T(shares.floor * weight) * x[j];
    }
  }
  return loss;
}

/// Derivative of one example's loss, times `factor`.
template <class T>
void cross_entropy_gradient(const T* x, int64_t classes, int64_t label, const ClassShares& shares,
                            T factor, T* dx) {
  const ExponentialSum<T> sum(x, classes);
  for (int64_t j = 0; j < classes; ++j) {
    const double weight = shares.weights == nullptr ? 1.0 : shares.weights[j];
    const T target = T(shares.floor * weight + (j == label ? shares.label : 0.0));
    dx[j] = factor * (T(shares.total) * sum.probability(x[j]) - target);
  }
}

/// Loss of one logit: max(x, 0) − x t + log(1 + e^−|x|).
template <class T>
T binary_cross_entropy(T x, T target) {
  const bool is_negative = std::real(x) < 0;
  return (is_negative ? T(0) : x) - x * target + std::log(T(1) + std::exp(is_negative ? x : -x));
}

template <class Sum, class T>
Sum sum_binary_cross_entropy(const T* x, const T* targets, int64_t count) {
  Sum total = Sum(0);
  for (int64_t i = 0; i < count; ++i) total += binary_cross_entropy(Sum(x[i]), Sum(targets[i]));
  return total;
}

template <class T>
void binary_cross_entropy_gradient(T factor, const T* x, const T* targets, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_negative = std::real(x[i]) < 0;
    const T power = std::exp(is_negative ? x[i] : -x[i]);
    dx[i] = factor * ((is_negative ? power : T(1)) / (T(1) + power) - targets[i]);
  }
}

/// Loss of one logit whose target 1 has the weight w: (1 − t) x + (1 + (w − 1) t) (log(1 + e^−|x|)
/// + max(−x, 0)).
template <class T>
T weighted_binary_cross_entropy(T x, T target, T weight) {
  const bool is_negative = std::real(x) < 0;
  const T rest = std::log(T(1) + std::exp(is_negative ? x : -x)) - (is_negative ? x : T(0));
  return (T(1) - target) * x + (T(1) + (weight - T(1)) * target) * rest;
}

template <class Sum, class T>
Sum sum_weighted_binary_cross_entropy(const T* x, const T* targets, const T* weights,
                                      int64_t count) {
  Sum total = Sum(0);
  for (int64_t i = 0; i < count; ++i) {
    total += weighted_binary_cross_entropy(Sum(x[i]), Sum(targets[i]), Sum(weights[i]));
  }
  return total;
}

template <class T>
void weighted_binary_cross_entropy_gradient(T factor, const T* x, const T* targets,
                                            const T* weights, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_negative = std::real(x[i]) < 0;
    const T power = std::exp(is_negative ? x[i] : -x[i]);
    const T probability = (is_negative ? power : T(1)) / (T(1) + power);
    const T share = T(1) + (weights[i] - T(1)) * targets[i];
    dx[i] = factor * (share * probability - weights[i] * targets[i]);
  }
}

}  // namespace lacuna::reference
