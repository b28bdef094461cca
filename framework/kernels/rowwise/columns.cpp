#include "lacuna/framework/kernels/rowwise/columns.hpp"

#include <algorithm>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/task_size.hpp"

namespace lacuna {

void copy_columns(const ColumnCopy& copy) {
  const int64_t grain = rows_per_task(copy.columns);
  parallel_for(copy.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(copy.from + row * copy.from_stride, copy.columns, copy.to + row * copy.to_stride);
    }
  });
}

}  // namespace lacuna
