// What the kernels over batch slabs agree on: the bytes of a row, and how slabs are counted.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Bytes of a feature's row in a slab.
inline constexpr int64_t kSlabRowBytes = kSlabWidth * static_cast<int64_t>(sizeof(float));

inline int64_t slab_count(int64_t batch) { return (batch + kSlabWidth - 1) / kSlabWidth; }

/// Whether the activations of a product do not stay in a second-level cache, so that a slab should
/// be asked for while the one before it is worked on.
inline bool slabs_exceed_cache(int64_t rows, int64_t columns, int64_t slabs) {
  return slabs * (rows + columns) * kSlabRowBytes > (int64_t{3} << 19);
}

}  // namespace lacuna
