// Selections by their definitions, over masks of bits: what the product's are held against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/sparsity/options/score_groups.h"

namespace lacuna::by_definition {

/// Sets the `count` positions of a group, in the mask or outside it, with the largest scores:
/// sorted by score (descending, NaN last) and flat index.
inline void choose(const std::vector<float>& scores, int64_t count, const BitMask& mask,
                   bool inside, const GroupIndex& groups, int64_t group, BitMask& chosen) {
  std::vector<int64_t> order;
  for (int64_t place = 0; place < groups.size(); ++place) {
    const int64_t flat = groups.flat(group, place);
    if (mask.test(flat) == inside) order.push_back(flat);
  }
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return std::isnan(x) || std::isnan(y) ? !std::isnan(x) && std::isnan(y) : x > y;
  });
  for (size_t i = 0; i < order.size() && static_cast<int64_t>(i) < count; ++i) chosen.set(order[i]);
}

/// The `per_group` allowed positions with the largest scores in each group.
inline BitMask top_k(const std::vector<float>& scores, int64_t per_group, const BitMask& allowed,
                     const GroupIndex& groups) {
  BitMask chosen = BitMask::zeros(allowed.size());
  for (int64_t g = 0; g < groups.count(); ++g) {
    choose(scores, per_group, allowed, true, groups, g, chosen);
  }
  return chosen;
}

/// `mask` and the positions outside it with the largest scores, until each group has `per_group`.
inline BitMask grow_maximum(const std::vector<float>& scores, int64_t per_group,
                            const BitMask& mask, const GroupIndex& groups) {
  BitMask grown = mask;
  for (int64_t g = 0; g < groups.count(); ++g) {
    int64_t there = 0;
    for (int64_t place = 0; place < groups.size(); ++place) {
      there += mask.test(groups.flat(g, place)) ? 1 : 0;
    }
    choose(scores, per_group - there, mask, false, groups, g, grown);
  }
  return grown;
}

}  // namespace lacuna::by_definition
