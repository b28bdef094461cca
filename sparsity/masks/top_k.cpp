#include "lacuna/sparsity/masks/top_k.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/kth_largest.hpp"
#include "lacuna/framework/kernels/select/topk.hpp"
#include "lacuna/sparsity/masks/group_collectors.hpp"
#include "lacuna/sparsity/masks/group_counts.hpp"
#include "lacuna/sparsity/masks/shared_growth.hpp"

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

namespace {

/// Streams rows of scores through one collector per group.
class Growth {
 public:
  Growth(const ScoreRows& scores, const Positions& present, const GroupIndex& groups,
         std::vector<int64_t> wanted)
      : scores_(scores), present_(present), groups_(groups), wanted_(std::move(wanted)) {}

  Positions grow() {
    const float floor = guess();
    collect(floor);
    if (floor >= 0.0f && collectors_[0].size() < wanted_[0]) collect(-1.0f);  // guessed too high
    tile_ = Array<float>();  // {} would keep its memory
    std::vector<int64_t> grown;
    for (size_t g = 0; g < wanted_.size(); ++g) {
      std::vector<int64_t> part = collectors_[g].take();
      add_unscored(present_, groups_, static_cast<int64_t>(g), wanted_[g], part);
      if (g == 0) {
        grown = std::move(part);
      } else {
        grown.insert(grown.end(), part.begin(), part.end());
      }
    }
    collectors_.clear();
    return present_.with(grown);
  }

 private:
  // Scores of some rows, NaN where there is a position already: NaN is never collected.
  std::span<const float> tile(std::span<const int64_t> rows) {
    const int64_t columns = present_.columns();
    tile_.resize(static_cast<size_t>(columns) * rows.size());
    scores_(rows, tile_);
    for (size_t i = 0; i < rows.size(); ++i) {
      float* row = tile_.data() + static_cast<int64_t>(i) * columns;
      for (const uint32_t column : present_.row(rows[i])) {
        row[column] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    return tile_;
  }

  // A |score| that about one and a half times as many exceed as are wanted, from a sample of rows;
  // −1 for none.
  float guess() {
    constexpr int64_t kSampled = 16, kWorthIt = 256;
    constexpr size_t kSample = 4096;
    if (groups_.count() > 1 || present_.rows() < kWorthIt) return -1.0f;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < kSampled; ++i) {
      rows.push_back((2 * i + 1) * present_.rows() / (2 * kSampled));
    }
    std::vector<float> sample;
    const std::span<const float> all = tile(rows);
    for (size_t i = 0; i < all.size(); i += all.size() / kSample + 1) {
      if (!std::isnan(all[i])) sample.push_back(std::abs(all[i]));
    }
    const double free = static_cast<double>(groups_.size() - present_.count());
    const double share = 1.5 * static_cast<double>(wanted_[0]) / free;
    const auto rank = static_cast<size_t>(share * static_cast<double>(sample.size())) + 16;
    if (rank >= sample.size()) return -1.0f;
    const auto nth = sample.begin() + static_cast<int64_t>(rank);
    std::nth_element(sample.begin(), nth, sample.end(), std::greater<>());
    return *nth;
  }

  void collect(float floor) {
    collectors_.clear();
    for (const int64_t k : wanted_) collectors_.emplace_back(k, floor);
    const int64_t step = tile_rows(present_.rows(), present_.columns());
    std::vector<int64_t> rows;
    for (int64_t begin = 0; begin < present_.rows(); begin += step) {
      rows.resize(static_cast<size_t>(std::min(step, present_.rows() - begin)));
      std::iota(rows.begin(), rows.end(), begin);
      offer_rows(tile(rows), begin, present_.columns(), groups_, collectors_);
    }
  }

  const ScoreRows& scores_;
  const Positions& present_;
  const GroupIndex& groups_;
  std::vector<int64_t> wanted_;  // by group
  std::vector<TopKCollector> collectors_;
  Array<float> tile_;
};

}  // namespace

Positions grow_maximum(const ScoreRows& scores, int64_t per_group, const Positions& present,
                       const GroupIndex& groups) {
  std::vector<int64_t> wanted = missing(per_group, present, groups);
  if (std::ranges::all_of(wanted, [](int64_t n) { return n == 0; })) return present;
  return Growth(scores, present, groups, std::move(wanted)).grow();
}

}  // namespace lacuna
