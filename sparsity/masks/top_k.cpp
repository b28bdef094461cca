#include "lacuna/sparsity/masks/top_k.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/kth_largest.hpp"
#include "lacuna/sparsity/masks/group_counts.hpp"

namespace lacuna {
namespace {

// The smallest key that stays in a group, and how many of those equal to it.
template <class Item>
KthLargest smallest_kept(std::span<const Item> items, int64_t k) {
  if (k <= 0) return {std::numeric_limits<uint32_t>::max(), 0};  // above the key of any float
  if (k >= static_cast<int64_t>(items.size())) return {0, static_cast<int64_t>(items.size())};
  return kth_largest(items, k);
}

// Whether a key stays. The comparison is added up, not branched on; ties are rare.
bool stays(uint32_t key, KthLargest& smallest) {
  if (key == smallest.key) [[unlikely]]
    return smallest.ties-- > 0;
  return key > smallest.key;
}

Positions top_k_of_groups(const Positions& present, std::span<const float> scores,
                          int64_t per_group, const GroupIndex& groups) {
  // The keys of a group side by side.
  std::vector<int64_t> begin(static_cast<size_t>(groups.count()) + 1);
  for_each_with_group(present, groups, [&](size_t, size_t group) { ++begin[group + 1]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  Array<uint32_t> sorted(scores.size()), group_of(scores.size());
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for_each_with_group(present, groups, [&](size_t place, size_t group) {
    sorted[static_cast<size_t>(next[group]++)] = order_key(scores[place]);
    group_of[place] = static_cast<uint32_t>(group);
  });
  std::vector<KthLargest> smallest;
  for (size_t g = 0; g + 1 < begin.size(); ++g) {
    smallest.push_back(smallest_kept(
        std::span<const uint32_t>(sorted).subspan(static_cast<size_t>(begin[g]),
                                                  static_cast<size_t>(begin[g + 1] - begin[g])),
        per_group));
  }
  return present.filtered(
      [&](size_t place) { return stays(order_key(scores[place]), smallest[group_of[place]]); });
}

}  // namespace

Positions top_k(const Positions& present, std::span<const float> scores, int64_t per_group,
                const GroupIndex& groups) {
  if (static_cast<int64_t>(scores.size()) != present.count()) {
    throw ShapeError(fmt::format("a selection among {} positions needs as many scores, found {}",
                                 present.count(), scores.size()));
  }
  if (groups.count() > 1) return top_k_of_groups(present, scores, per_group, groups);
  if (per_group >= present.count()) return present;
  KthLargest kept = smallest_kept(scores, per_group);
  return present.filtered([&](size_t place) { return stays(order_key(scores[place]), kept); });
}

}  // namespace lacuna
