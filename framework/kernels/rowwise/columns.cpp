#include "lacuna/framework/kernels/rowwise/columns.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {

void copy_columns(const ColumnCopy& copy) {
  constexpr int64_t kElements = 16384;  // of a block: 64 KiB, so that small copies stay in one
  const int64_t grain = std::max<int64_t>(1, kElements / std::max<int64_t>(1, copy.columns));
  parallel_for(copy.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(copy.from + row * copy.from_stride, copy.columns, copy.to + row * copy.to_stride);
    }
  });
}

}  // namespace lacuna
