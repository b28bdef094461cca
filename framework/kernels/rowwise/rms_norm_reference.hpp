// Normalization by the root of the mean square in plain C++ on any value type.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lacuna/framework/kernels/rowwise/rms_norm.hpp"

namespace lacuna::reference {

template <class T>
void rms_norm(const NormShape& shape, double eps, const T* x, const T* weight, T* y,
              T* inverse_root) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, y += n) {
    T squares = T(0);
    for (int64_t j = 0; j < n; ++j) squares += x[j] * x[j];
    inverse_root[r] = T(1) / std::sqrt(squares / T(static_cast<float>(n)) + T(eps));
    for (int64_t j = 0; j < n; ++j) y[j] = x[j] * inverse_root[r] * weight[j];
  }
}

template <class T>
void rms_norm_gradient(const NormShape& shape, const T* x, const T* weight, const T* inverse_root,
                       const T* dy, T* dx, T* product) {
  const int64_t n = shape.features;
  for (int64_t r = 0; r < shape.rows; ++r, x += n, dy += n, dx += n, product += n) {
    T projection = T(0);
    for (int64_t j = 0; j < n; ++j) {
      product[j] = dy[j] * (x[j] * inverse_root[r]);
      projection += product[j] * weight[j];
    }
    projection /= T(static_cast<float>(n));
    for (int64_t j = 0; j < n; ++j) {
      dx[j] = inverse_root[r] * (dy[j] * weight[j] - x[j] * inverse_root[r] * projection);
    }
  }
}

}  // namespace lacuna::reference
