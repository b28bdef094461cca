// A parallel sum whose result does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {

/// Σ part(begin, end) over [0, count) cut into ranges of `grain`, added in order.
template <class Part>
double sum_blocks(int64_t count, int64_t grain, Part&& part) {
  if (count <= grain) return count > 0 ? part(int64_t{0}, count) : 0.0;
  std::vector<double> parts(static_cast<size_t>((count + grain - 1) / grain));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    parts[static_cast<size_t>(begin / grain)] = part(begin, end);
  });
  double total = 0.0;
  for (const double value : parts) total += value;
  return total;
}

}  // namespace lacuna
