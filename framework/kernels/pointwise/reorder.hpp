// Converting activations between the storage orders.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The tensor itself when it is in `order` already, else a converted copy, the padding zero.
/// *Cost:* one pass over memory by blocks transposed in registers, on several threads: about 2 % of
/// a product with a weight of 50 % density, 45 % of one of 1 %, for [128, 1024].
Tensor reordered(const Tensor& tensor, Order order);

/// Conversions that this thread has asked for, and the bytes of what came of them.
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

/// Those of `reordered` since the thread began; what a kernel turns on its way is its own.
ConversionCount conversions_so_far();

/// to[column · to_stride + row] = from[row · from_stride + column].
using Transposition = void (*)(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                               int64_t rows, int64_t columns);
/// The one for the active instruction set.
Transposition transposition();

/// A single slab: `count` ≤ 64 row-major rows of `features` floats as [features][64], zero in the
/// padding, and back. Both run in the calling thread.
void slab_of_rows(const float* rows, int64_t count, int64_t features, float* slab);
void rows_of_slab(const float* slab, int64_t count, int64_t features, float* rows);

/// `count` row-major matrices [rows, columns], each transposed, one after the other, on several
/// threads.
void transpose_matrices(int64_t count, int64_t rows, int64_t columns, const float* from, float* to);

}  // namespace lacuna
