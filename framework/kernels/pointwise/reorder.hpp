// Converting activations between the storage orders.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The tensor itself if it already is in `order`, else a converted copy with zero padding. *Cost:*
/// one pass over memory, in blocks transposed in registers, on several threads: for [128, 1024],
/// about 2 % of a product with a weight of 50 % density, 45 % for a density of 1 %.
Tensor reordered(const Tensor& tensor, Order order);

/// The number of conversions that this thread has requested, and the bytes of their results.
struct ConversionCount {
  int64_t conversions = 0;
  int64_t bytes = 0;
  friend ConversionCount operator-(const ConversionCount& a, const ConversionCount& b) {
    return {a.conversions - b.conversions, a.bytes - b.bytes};
  }
  friend ConversionCount operator+(const ConversionCount& a, const ConversionCount& b) {
    return {a.conversions + b.conversions, a.bytes + b.bytes};
  }
};

/// The conversions by `reordered` since the thread began, without those within kernels.
ConversionCount conversions_so_far();

/// to[column · to_stride + row] = from[row · from_stride + column].
using Transposition = void (*)(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                               int64_t rows, int64_t columns);
/// The transposition for the active instruction set.
Transposition transposition();

/// Converts a single slab: `count` ≤ 64 row-major rows of `features` floats to [features][64], with
/// zero padding, and back. Both run in the calling thread.
void slab_of_rows(const float* rows, int64_t count, int64_t features, float* slab);
void rows_of_slab(const float* slab, int64_t count, int64_t features, float* rows);

/// Transposes `count` consecutive row-major matrices [rows, columns], on several
/// threads.
void transpose_matrices(int64_t count, int64_t rows, int64_t columns, const float* from, float* to);

}  // namespace lacuna
