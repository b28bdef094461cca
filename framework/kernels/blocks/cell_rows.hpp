// Consecutive rows of cells with the same columns, as in larger blocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lacuna {

/// Whether `rows` rows of cells, from the run's i-th on, are consecutive with equal columns.
template <class Run>
bool share_columns(const Run& run, int64_t i, int64_t rows) {
  if (i + rows > run.count) return false;
  const uint16_t* offsets = run.offsets + i * run.length;
  for (int64_t r = 1; r < rows; ++r) {
    if (run.rows[i + r] != run.rows[i] + static_cast<uint32_t>(r)) return false;
    if (!std::equal(offsets, offsets + run.length, offsets + r * run.length)) return false;
  }
  return true;
}

}  // namespace lacuna
