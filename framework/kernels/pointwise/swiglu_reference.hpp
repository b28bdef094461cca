// The gated unit of SiLU in plain C++ on any value type.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

namespace lacuna::reference {

template <class T>
T sigmoid_of(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
void swiglu(int64_t rows, int64_t count, const T* x, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += 2 * count, y += count) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] * sigmoid_of(x[i]) * x[count + i];
  }
}

template <class T>
void swiglu_gradient(int64_t rows, int64_t count, const T* x, const T* dy, T* dx) {
  for (int64_t r = 0; r < rows; ++r, x += 2 * count, dx += 2 * count, dy += count) {
    for (int64_t i = 0; i < count; ++i) {
      const T p = sigmoid_of(x[i]);
      dx[i] = dy[i] * x[count + i] * p * (T(1) + x[i] * (T(1) - p));
      dx[count + i] = dy[i] * x[i] * p;
    }
  }
}

}  // namespace lacuna::reference
