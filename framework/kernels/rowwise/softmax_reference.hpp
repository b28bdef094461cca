// Softmax and its derivative in plain C++ on any value type.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#include "lacuna/framework/kernels/rowwise/softmax.hpp"

namespace lacuna::reference {

/// m = max x and Σ_j e^(x_j − m), in which nothing overflows.
template <class T>
struct ExponentialSum {
  ExponentialSum(const T* x, int64_t count) : largest(x[0]), total(0) {
    for (int64_t j = 1; j < count; ++j) {
      if (std::real(x[j]) > std::real(largest)) largest = x[j];
    }
    for (int64_t j = 0; j < count; ++j) total += std::exp(x[j] - largest);
  }
  T probability(T x) const { return std::exp(x - largest) / total; }
  T log_probability(T x) const { return x - largest - std::log(total); }

  T largest, total;
};

template <class T>
void softmax(SoftmaxKind kind, int64_t rows, int64_t features, const T* x, T* y) {
  if (features == 0) return;
  for (int64_t r = 0; r < rows; ++r, x += features, y += features) {
    const ExponentialSum<T> sum(x, features);
    for (int64_t j = 0; j < features; ++j) {
      y[j] = kind == SoftmaxKind::Logarithm ? sum.log_probability(x[j]) : sum.probability(x[j]);
    }
  }
}

template <class T>
void softmax_gradient(SoftmaxKind kind, int64_t rows, int64_t features, const T* y, const T* dy,
                      T* dx) {
  for (int64_t r = 0; r < rows; ++r, y += features, dy += features, dx += features) {
    T total = T(0);
    for (int64_t j = 0; j < features; ++j) {
      total += kind == SoftmaxKind::Logarithm ? dy[j] : dy[j] * y[j];
    }
    for (int64_t j = 0; j < features; ++j) {
      dx[j] =
          kind == SoftmaxKind::Logarithm ? dy[j] - std::exp(y[j]) * total : y[j] * (dy[j] - total);
    }
  }
}

}  // namespace lacuna::reference
