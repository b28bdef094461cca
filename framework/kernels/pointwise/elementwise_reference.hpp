// Elementwise arithmetic in plain C++ on any value type, to check the vector kernels.
#pragma once

#include <cstdint>

namespace lacuna {

enum class Arithmetic { Add, Subtract, Multiply, Scale, Approach };

namespace reference {

/// y[i] = a ∘ b; Scale: factor · a (b is not read); Approach: b + factor · (a − b).
template <class T>
void arithmetic(Arithmetic operation, T factor, const T* a, const T* b, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    switch (operation) {
      case Arithmetic::Add:
        y[i] = a[i] + b[i];
        break;
      case Arithmetic::Subtract:
        y[i] = a[i] - b[i];
        break;
      case Arithmetic::Multiply:
        y[i] = a[i] * b[i];
        break;
      case Arithmetic::Scale:
        y[i] = factor * a[i];
        break;
      case Arithmetic::Approach:
        y[i] = b[i] + factor * (a[i] - b[i]);
        break;
    }
  }
}

}  // namespace reference
}  // namespace lacuna
