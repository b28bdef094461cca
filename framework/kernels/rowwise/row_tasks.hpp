// How many rows of a matrix make a task.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lacuna {

/// Rows of `width` elements that together have about `elements`; at least one.
inline int64_t rows_per_task(int64_t elements, int64_t width) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, width));
}

}  // namespace lacuna
