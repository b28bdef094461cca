// Layer normalization and its derivatives in plain C++ on any value type.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lacuna/framework/kernels/rowwise/norm.hpp"

namespace lacuna::reference {

template <class T>
void layer_norm(const NormShape& shape, double eps, const T* x, const T* weight, const T* bias,
                T* y, T* mean, T* inverse_deviation) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, y += n) {
    T sum = T(0), squares = T(0);
    for (int64_t j = 0; j < n; ++j) sum += x[j];
    mean[r] = sum / T(static_cast<float>(n));
    for (int64_t j = 0; j < n; ++j) squares += (x[j] - mean[r]) * (x[j] - mean[r]);
    inverse_deviation[r] = T(1) / std::sqrt(squares / T(static_cast<float>(n)) + T(eps));
    for (int64_t j = 0; j < n; ++j) {
      y[j] = (x[j] - mean[r]) * inverse_deviation[r] * weight[j] + bias[j];
    }
  }
}

template <class T>
void layer_norm_gradient(const NormShape& shape, const T* x, const T* weight, const T* mean,
                         const T* inverse_deviation, const T* dy, T* dx, T* product) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, dy += n, dx += n, product += n) {
    T sum = T(0), projection = T(0);
    for (int64_t j = 0; j < n; ++j) {
      product[j] = dy[j] * ((x[j] - mean[r]) * inverse_deviation[r]);
      sum += dy[j] * weight[j];
      projection += product[j] * weight[j];
    }
    sum /= T(static_cast<float>(n));
    projection /= T(static_cast<float>(n));
    for (int64_t j = 0; j < n; ++j) {
      const T normalized = (x[j] - mean[r]) * inverse_deviation[r];
      dx[j] = inverse_deviation[r] * (dy[j] * weight[j] - sum - normalized * projection);
    }
  }
}

}  // namespace lacuna::reference
