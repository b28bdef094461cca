// Conventions of the kernels over batch slabs: the bytes of a row, and the number of slabs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Bytes of a feature's row in a slab.
inline constexpr int64_t kSlabRowBytes = kSlabWidth * static_cast<int64_t>(sizeof(float));

inline int64_t slab_count(int64_t batch) { return (batch + kSlabWidth - 1) / kSlabWidth; }

/// Whether the activations of a product exceed a second-level cache, so that the next slab should
/// be prefetched while the current one is processed.
inline bool slabs_exceed_cache(int64_t rows, int64_t columns, int64_t slabs) {
  return slabs * (rows + columns) * kSlabRowBytes > (int64_t{3} << 19);
}

/// Calls `run(slab, part, examples, has_next)` in parallel for each of `parts` parts of a matrix
/// and each slab of a batch. `has_next`: whether another slab may follow, in most cases of the same
/// thread.
template <class Run>
void for_each_slab_part(int64_t batch, int64_t parts, const Run& run) {
  const int64_t slabs = slab_count(batch);
  parallel_blocks(slabs * parts, [&](int64_t unit) {
    const int64_t slab = unit / parts;
    run(slab, unit % parts, std::min(kSlabWidth, batch - slab * kSlabWidth), slab + 1 < slabs);
  });
}

}  // namespace lacuna
