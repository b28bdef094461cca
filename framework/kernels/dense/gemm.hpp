// Dense matrix products, the opponent of every sparse kernel and the dense path of training.
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

/// How many blocks a product, or a direct convolution, is cut into at most: as many as the machine
/// has processors, to the next power of two, of 2 to 32; or the value of `LACUNA_DENSE_BLOCKS`, so
/// that machines of different size give the same numbers. More blocks serve more threads, and each
/// packs its operands again. *Errors:* ConfigError if the variable is not a number from 1 to 64.
int64_t most_dense_blocks();

/// "oneDNN 2.6.3" or "Eigen 3.4.0": what dense products run on.
std::string dense_provider();

}  // namespace lacuna
