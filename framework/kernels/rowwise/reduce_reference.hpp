// Sums in plain C++ on any value type.
#pragma once

#include <cstdint>

namespace lacuna::reference {

/// sums[c] = Σ_r x[r, c] for c < columns, of rows that lie `stride` elements apart.
template <class T>
void sum_columns(const T* x, int64_t rows, int64_t stride, int64_t columns, T* sums) {
  for (int64_t c = 0; c < columns; ++c) sums[c] = T(0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += x[r * stride + c];
  }
}

/// Σ x.
template <class T>
double sum(const T* x, int64_t count) {
  double total = 0.0;
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

}  // namespace lacuna::reference
