// How growth goes through scores that come in rows: a collector of the largest for each score
// group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/kernels/select/topk.hpp"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna {

/// Offers whole rows of scores, from `first_row` on, each to its group's collector. Rows ascend
/// from call to call.
inline void offer_rows(std::span<const float> scores, int64_t first_row, int64_t columns,
                       const GroupIndex& groups, std::vector<TopKCollector>& collectors) {
  if (groups.count() == 1) {
    collectors[0].offer(scores, first_row * columns);
    return;
  }
  const auto run = static_cast<size_t>(groups.columns_of_one());  // of one group after the other
  for (size_t begin = 0; begin < scores.size(); begin += run) {
    const int64_t flat = first_row * columns + static_cast<int64_t>(begin);
    const int64_t group = groups.of(flat / columns, flat % columns);
    collectors[static_cast<size_t>(group)].offer(scores.subspan(begin, run), flat);
  }
}

/// Where fewer of a group's positions have a score than are wanted, all that have one are chosen
/// (ascending); the others' is NaN: appends the first of them.
inline void add_unscored(const Positions& present, const GroupIndex& groups, int64_t group,
                         int64_t wanted, std::vector<int64_t>& chosen) {
  if (static_cast<int64_t>(chosen.size()) >= wanted) return;
  const std::vector<int64_t> scored = chosen;
  for (int64_t place = 0; static_cast<int64_t>(chosen.size()) < wanted; ++place) {
    const int64_t flat = groups.flat(group, place);
    if (present.contains(flat) || std::ranges::binary_search(scored, flat)) continue;
    chosen.push_back(flat);
  }
}

}  // namespace lacuna
