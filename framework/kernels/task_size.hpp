// How much work kernels give to a task.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lacuna {

/// Elements of a task: of one pass over them, and of several (norms, softmax). The order of sums
/// depends on these numbers.
inline constexpr int64_t kElementsPerTask = 1 << 14, kElementsPerRowTask = 1 << 13;

/// Rows of `width` elements that together have about `elements`; at least one.
inline int64_t rows_per_task(int64_t width, int64_t elements = kElementsPerTask) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, width));
}

}  // namespace lacuna
