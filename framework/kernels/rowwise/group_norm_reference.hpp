// Group normalization and its derivatives in plain C++ on any value type.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "lacuna/framework/kernels/rowwise/group_norm.hpp"

namespace lacuna::reference {

template <class T>
void group_norm(const GroupNormShape& shape, double eps, const T* x, const T* weight, const T* bias,
                T* y, T* mean, T* inverse_deviation) {
  const int64_t channels = shape.group_channels(), n = channels * shape.size;
  for (int64_t i = 0; i < shape.batch * shape.groups; ++i, x += n, y += n) {
    const int64_t first = i % shape.groups * channels;
    T sum = T(0), squares = T(0);
    for (int64_t j = 0; j < n; ++j) sum += x[j];
    mean[i] = sum / T(static_cast<float>(n));
    for (int64_t j = 0; j < n; ++j) squares += (x[j] - mean[i]) * (x[j] - mean[i]);
    inverse_deviation[i] = T(1) / std::sqrt(squares / T(static_cast<float>(n)) + T(eps));
    for (int64_t j = 0; j < n; ++j) {
      const int64_t c = first + j / shape.size;
      y[j] = (x[j] - mean[i]) * inverse_deviation[i] * weight[c] + bias[c];
    }
  }
}

template <class T>
void group_norm_gradient(const GroupNormShape& shape, const T* x, const T* weight, const T* mean,
                         const T* inverse_deviation, const T* dy, T* dx, T* products, T* totals) {
  const int64_t channels = shape.group_channels(), n = channels * shape.size;
  for (int64_t i = 0; i < shape.batch * shape.groups; ++i, x += n, dy += n, dx += n) {
    const int64_t first = i % shape.groups * channels;
    T sum = T(0), projection = T(0);
    for (int64_t c = 0; c < channels; ++c) {
      T product = T(0), total = T(0);
      for (int64_t j = c * shape.size; j < (c + 1) * shape.size; ++j) {
        product += dy[j] * ((x[j] - mean[i]) * inverse_deviation[i]);
        total += dy[j];
      }
      products[i * channels + c] = product;
      totals[i * channels + c] = total;
      sum += total * weight[first + c];
      projection += product * weight[first + c];
    }
    sum /= T(static_cast<float>(n));
    projection /= T(static_cast<float>(n));
    for (int64_t j = 0; j < n; ++j) {
      const T normalized = (x[j] - mean[i]) * inverse_deviation[i];
      dx[j] = inverse_deviation[i] *
              (dy[j] * weight[first + j / shape.size] - sum - normalized * projection);
    }
  }
}

}  // namespace lacuna::reference
