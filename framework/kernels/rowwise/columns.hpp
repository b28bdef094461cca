// Copies of some columns of a matrix.
#pragma once

#include <cstdint>

namespace lacuna {

/// Rows of `columns` floats each, `from_stride` and `to_stride` floats apart.
struct ColumnCopy {
  const float* from = nullptr;
  int64_t from_stride = 0;
  float* to = nullptr;
  int64_t to_stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

/// Copies them, on several threads. *Requires* that source and target do not overlap.
void copy_columns(const ColumnCopy& copy);

}  // namespace lacuna
