// What the tests of norms over the features share.
#pragma once

#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/norm.hpp"

namespace lacuna::test {

/// The sums over each block of kNormRows rows of an array [rows, n].
template <class T>
std::vector<T> block_sums(const std::vector<T>& values, int64_t rows, int64_t n) {
  std::vector<T> sums(static_cast<size_t>(norm_row_blocks(rows) * n));
  for (int64_t i = 0; i < rows * n; ++i) {
    sums[static_cast<size_t>(i / n / kNormRows * n + i % n)] += values[static_cast<size_t>(i)];
  }
  return sums;
}

template <class T>
std::vector<T> plus(std::vector<T> a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// The results of a norm's gradient, and the arrays that it writes them to.
struct NormGradientResult {
  NormGradientResult(const NormShape& shape, NormGradient gradient, bool adds)
      : added(normal_values("added", shape.rows * shape.features)),
        dx(added),
        products(static_cast<size_t>(norm_row_blocks(shape.rows) * shape.features)),
        totals(products) {
    gradient.added = adds ? dx.data() : nullptr;  // in place
    gradient.dx = dx.data();
    gradient.products = products.data();
    gradient.totals = gradient.mean == nullptr ? nullptr : totals.data();
    layer_norm_gradient(shape, gradient);
  }
  std::vector<float> added, dx, products, totals;
};

}  // namespace lacuna::test
