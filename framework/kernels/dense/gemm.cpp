// Dense products by oneDNN's sgemm, or by Eigen if oneDNN is not installed.
//
// The provider's own threading may cut a product, and so round, differently for each number of
// threads. So the output is cut here into blocks that depend only on the shapes and the machine,
// and each is one single-threaded call. Measured (Sapphire Rapids, one core, batch 128,
// 1024→1024): cutting costs 2–3 % of one core's time, and gains 8 % over sgemm's own threading on
// two.
#include "lacuna/framework/kernels/dense/gemm.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/kernel_memory.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

#if LACUNA_HAVE_DNNL
#include <dnnl.h>
#else
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#endif

namespace lacuna {
namespace {

struct Blocks {
  int64_t rows, columns;  // of C, in one block
};

// Whether sgemm packs the operands of an output of this size, on AVX2 and below. Otherwise it reads
// a transposed first factor in place, a few numbers from each of its rows.
bool is_packed(int64_t rows, int64_t columns) {
  constexpr double kThreshold = 0.0038;
  return 1.0 / static_cast<double>(rows) + 1.0 / static_cast<double>(columns) < kThreshold;
}

// Whether this must be checked: for gradients of weights, whose first factor is transposed.
bool may_be_unpacked(const GemmProblem& p) {
#if LACUNA_HAVE_DNNL
  static const bool is_avx512 = active_instruction_set() == "avx512";
  return p.transpose_a == Transpose::Yes && !is_avx512;
#else
  (void)p;
  return false;
#endif
}

// Halves the longer side until a block has at most 300 MFLOP, or the largest number of blocks is
// reached; products above 4 MFLOP get at least two blocks. Each block packs its operands again, and
// larger blocks spend less of their time on this: of 13008 × 4096 × 1024, 32 blocks run at 0.95 of
// sgemm's speed on one core of a Zen 4, the 1024 blocks of 150 MFLOP would run at 0.6. The three
// products of (1024, 768→3072) on an Intel Xeon run at 0.98, 0.89, 0.87 and 0.81 with 2, 4, 8 and
// 16 blocks. So there are no more blocks than the machine can process at a time, and only eight if
// smaller ones would not be packed. Their number is even, so that two threads end together;
// multiples of 8 rows and 16 columns suit sgemm's register tiles.
Blocks cut(const GemmProblem& p) {
  constexpr double kBlockOperations = 300e6, kSerialOperations = 4e6;
  constexpr int64_t kEnoughBlocks = 8;
  constexpr int64_t kMinRows = 32, kMinColumns = 64;
  const auto piece = [](int64_t size, int64_t pieces, int64_t unit) {
    return ((size + pieces - 1) / pieces + unit - 1) / unit * unit;
  };
  const double operations =
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const int64_t most_blocks = most_dense_blocks();
  int64_t down = 1, across = 1;
  const auto too_large = [&](int64_t blocks) {
    return blocks < most_blocks && (operations / static_cast<double>(blocks) > kBlockOperations ||
                                    (blocks == 1 && operations > kSerialOperations));
  };
  const bool keeps_packing = may_be_unpacked(p) && is_packed(p.m, p.n);
  while (too_large(down * across)) {
    const int64_t rows = p.m / down, columns = p.n / across;
    if (rows < 2 * kMinRows && columns < 2 * kMinColumns) break;
    const bool by_rows = columns < 2 * kMinColumns || (rows >= columns && rows >= 2 * kMinRows);
    const bool is_enough =
        down * across >= kEnoughBlocks || operations < kEnoughBlocks * kBlockOperations;
    if (keeps_packing && is_enough &&
        !is_packed(by_rows ? rows / 2 : rows, by_rows ? columns : columns / 2)) {
      break;
    }
    (by_rows ? down : across) *= 2;
  }
  return {piece(std::max<int64_t>(p.m, 1), down, 8), piece(std::max<int64_t>(p.n, 1), across, 16)};
}

// One block: op(A)[m, k] · op(B)[k, n] into C, with the leading dimensions of the whole matrices.
struct Block {
  int64_t m, n, k;
  const float* a;
  const float* b;
  float* c;
  int64_t lda, ldb, ldc;
};

void multiply_reference(const Block& t, const GemmProblem& p) {
  const bool ta = p.transpose_a == Transpose::Yes, tb = p.transpose_b == Transpose::Yes;
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      double sum = p.beta == 0.0f ? 0.0 : t.c[i * t.ldc + j];
      for (int64_t l = 0; l < t.k; ++l) {
        sum += static_cast<double>(t.a[ta ? l * t.lda + i : i * t.lda + l]) *
               t.b[tb ? j * t.ldb + l : l * t.ldb + j];
      }
      t.c[i * t.ldc + j] = static_cast<float>(sum);
    }
  }
}

#if LACUNA_HAVE_DNNL

// Copies a block's columns of a transposed first factor to rows of another length if its rows of 2
// KiB or a multiple would fall into the same sets of a cache. Zen 3, 3072 × 768 of 1024 examples in
// 8 blocks: 136 → 61 ms.
Array<float> spread_rows(Block& t, const GemmProblem& p) {
  constexpr int64_t kSameSets = 512, kLine = 16;
  if (!may_be_unpacked(p) || t.lda % kSameSets != 0 || is_packed(t.m, t.n)) return {};
  const int64_t length = (t.m + kLine - 1) / kLine * kLine + kLine;
  Array<float> rows(static_cast<size_t>(length * t.k));
  for (int64_t l = 0; l < t.k; ++l) std::copy_n(t.a + l * t.lda, t.m, rows.data() + l * length);
  t.a = rows.data(), t.lda = length;
  return rows;
}

void multiply(Block t, const GemmProblem& p) {
  const Array<float> rows = spread_rows(t, p);
  const auto letter = [](Transpose transpose) { return transpose == Transpose::Yes ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(letter(p.transpose_a), letter(p.transpose_b), t.m, t.n,
                                          t.k, 1.0f, t.a, t.lda, t.b, t.ldb, p.beta, t.c, t.ldc);
  if (status != dnnl_success) {
    throw Error(fmt::format("oneDNN's sgemm failed with status {} on [{}, {}] x [{}, {}]", status,
                            t.m, t.k, t.k, t.n));
  }
}

// To be called before the first product.
void prepare_provider() {
  static const bool is_ready = (require_memory_for_kernels(), true);
  (void)is_ready;
}

#else

void prepare_provider() {}

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::Map<const Matrix, 0, Eigen::OuterStride<> >;

void multiply(const Block& t, const GemmProblem& p) {
  const bool ta = p.transpose_a == Transpose::Yes, tb = p.transpose_b == Transpose::Yes;
  const Strided a(t.a, ta ? t.k : t.m, ta ? t.m : t.k, Eigen::OuterStride<>(t.lda));
  const Strided b(t.b, tb ? t.n : t.k, tb ? t.k : t.n, Eigen::OuterStride<>(t.ldb));
  Eigen::Map<Matrix, 0, Eigen::OuterStride<> > c(t.c, t.m, t.n, Eigen::OuterStride<>(t.ldc));
  if (p.beta == 0.0f) c.setZero();
  if (ta && tb) {
    c.noalias() += a.transpose() * b.transpose();
  } else if (ta) {
    c.noalias() += a.transpose() * b;
  } else if (tb) {
    c.noalias() += a * b.transpose();
  } else {
    c.noalias() += a * b;
  }
}

#endif

int64_t read_most_blocks() {
  constexpr int64_t kFewest = 2, kMost = 32, kMostAllowed = 64;
  if (const char* text = std::getenv("LACUNA_DENSE_BLOCKS"); text != nullptr && *text != '\0') {
    int64_t blocks = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, blocks);
    if (error != std::errc() || stop != end || blocks < 1 || blocks > kMostAllowed) {
      throw ConfigError(
          fmt::format("LACUNA_DENSE_BLOCKS: needs a number of blocks from 1 to {}, found '{}'",
                      kMostAllowed, text));
    }
    return blocks;
  }
  const auto processors = std::max<int64_t>(::sysconf(_SC_NPROCESSORS_CONF), 1);
  return std::clamp(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(processors))), kFewest,
                    kMost);
}

void add_bias(const Block& t, const float* bias) {
  for (int64_t i = 0; i < t.m; ++i) {
    float* row = t.c + i * t.ldc;
    for (int64_t j = 0; j < t.n; ++j) row[j] += bias[j];
  }
}

}  // namespace

void gemm(const GemmProblem& p) {
  if (p.m == 0 || p.n == 0) return;
  const bool reference = use_reference_kernels();
  if (!reference) prepare_provider();
  const int64_t lda = p.transpose_a == Transpose::Yes ? p.m : p.k;
  const int64_t ldb = p.transpose_b == Transpose::Yes ? p.k : p.n;
  const Blocks size = cut(p);
  const int64_t across = (p.n + size.columns - 1) / size.columns;
  const int64_t down = (p.m + size.rows - 1) / size.rows;
  parallel_blocks(across * down, [&](int64_t index) {
    const int64_t i = index / across * size.rows, j = index % across * size.columns;
    const Block block{.m = std::min(size.rows, p.m - i),
                      .n = std::min(size.columns, p.n - j),
                      .k = p.k,
                      .a = p.a + (p.transpose_a == Transpose::Yes ? i : i * lda),
                      .b = p.b + (p.transpose_b == Transpose::Yes ? j * ldb : j),
                      .c = p.c + i * p.n + j,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = p.n};
    if (p.k == 0) {  // an empty sum, for which providers may not write C
      for (int64_t r = 0; p.beta == 0.0f && r < block.m; ++r) {
        std::fill_n(block.c + r * block.ldc, block.n, 0.0f);
      }
    } else if (reference) {
      multiply_reference(block, p);
    } else {
      multiply(block, p);
    }
    if (p.bias != nullptr) add_bias(block, p.bias + j);
  });
}

int64_t most_dense_blocks() {
  static const int64_t most = read_most_blocks();
  return most;
}

std::string dense_provider() {
#if LACUNA_HAVE_DNNL
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
#else
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
#endif
}

}  // namespace lacuna
