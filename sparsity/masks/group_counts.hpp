// How many of a matrix's positions each score group has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// Calls `visit(place, group)` for each position; places count from 0, ascending by flat index.
template <class Visit>
void for_each_with_group(const Positions& positions, const GroupIndex& groups, Visit&& visit) {
  size_t place = 0;
  for (int64_t r = 0; r < positions.rows(); ++r) {
    for (const uint32_t column : positions.row(r))
      visit(place++, static_cast<size_t>(groups.of(r, column)));
  }
}

/// Positions of each group. *Cost:* O(count).
inline std::vector<int64_t> counts_by_group(const Positions& positions, const GroupIndex& groups) {
  if (groups.count() == 1) return {positions.count()};
  std::vector<int64_t> counts(static_cast<size_t>(groups.count()));
  for_each_with_group(positions, groups, [&](size_t, size_t group) { ++counts[group]; });
  return counts;
}

/// What each group lacks of `per_group`, or of all its positions where these are fewer.
inline std::vector<int64_t> missing(int64_t per_group, const Positions& present,
                                    const GroupIndex& groups) {
  std::vector<int64_t> wanted = counts_by_group(present, groups);
  for (int64_t& count : wanted) {
    count = std::max<int64_t>(std::min(per_group, groups.size()) - count, 0);
  }
  return wanted;
}

}  // namespace lacuna
