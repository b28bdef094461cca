// Dense matrix products in double, for factorizations, where the rounding of float32 would affect
// the weights.
#pragma once

#include <cstdint>

#include "lacuna/framework/kernels/dense/gemm.hpp"

namespace lacuna {

/// C[m, n] += alpha · op(A)[m, k] · op(B)[k, n], row-major, each with its own distance between
/// rows.
struct DoubleProduct {
  int64_t m = 0, n = 0, k = 0;
  Transpose transpose_a = Transpose::No;  ///< Yes: A is stored [k, m]
  Transpose transpose_b = Transpose::No;  ///< Yes: B is stored [n, k]
  double alpha = 1.0;
  const double* a = nullptr;
  const double* b = nullptr;
  double* c = nullptr;  ///< must not overlap A or B
  int64_t lda = 0, ldb = 0, ldc = 0;
};

/// Adds the product. The result depends on the shapes and the instruction set, not on the number of
/// threads. *Cost:* 2·m·n·k operations, in parallel by tiles of 256 × 256; half a mebibyte per
/// thread.
void add_product(const DoubleProduct& product);

}  // namespace lacuna
