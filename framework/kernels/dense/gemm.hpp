// Dense matrix products: the dense path of training, and the baseline of every sparse kernel.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna {

enum class Transpose { No, Yes };

/// C[m, n] = op(A)[m, k] · op(B)[k, n] + beta · C + bias, all row-major.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  Transpose transpose_a = Transpose::No;  ///< Yes: A is stored [k, m]
  Transpose transpose_b = Transpose::No;  ///< Yes: B is stored [n, k]
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float beta = 0.0f;            ///< 0 (C is not read) or 1
  const float* bias = nullptr;  ///< [n], added to every row; null for none
};

/// Computes the product. The result depends on the shapes and on `most_dense_blocks()`, not on the
/// number of threads.
/// Leading dimensions are those of contiguous matrices. k = 0 gives beta · C + bias.
/// *Errors:* Error when the provider refuses (never for contiguous matrices that exist).
/// *Cost:* 2·m·n·k operations; the provider may allocate its packing buffers.
void gemm(const GemmProblem& problem);

/// The most blocks of a product, or of a direct convolution: the machine's processors, rounded up
/// to a power of two, from 2 to 32; or the value of `LACUNA_DENSE_BLOCKS`, so that different
/// machines give the same numbers. More blocks serve more threads, but each packs its operands
/// again. *Errors:* ConfigError if the variable is not a number from 1 to 64.
int64_t most_dense_blocks();

/// The library of dense products: "oneDNN 2.6.3" or "Eigen 3.4.0".
std::string dense_provider();

}  // namespace lacuna
