#include "lacuna/sparsity/selection.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "lacuna/framework/kernels/select/draws.h"
#include "lacuna/framework/kernels/select/kth_largest.h"

namespace lacuna {
namespace {

// The k-th largest key among those `visit` offers, and how many positions with exactly that key
// belong to the k largest. Two histograms of 16 bits each. *Requires* 1 ≤ k ≤ number offered.
template <class Visit>
std::pair<uint32_t, int64_t> kth_largest(const Visit& visit, int64_t k) {
  std::vector<int64_t> histogram(1 << 16);
  const auto find_bin = [&](int64_t& rest) {
    size_t bin = histogram.size();
    while (rest > 0) {
      --bin;
      if (histogram[bin] >= rest) break;
      rest -= histogram[bin];
    }
    return static_cast<uint32_t>(bin);
  };
  visit([&](int64_t, uint32_t key) { ++histogram[key >> 16]; });
  const uint32_t high = find_bin(k);
  std::ranges::fill(histogram, 0);
  visit([&](int64_t, uint32_t key) {
    if (key >> 16 == high) ++histogram[key & 0xffffu];
  });
  const uint32_t low = find_bin(k);
  return {high << 16 | low, k};
}

// Sets the k largest of one group's eligible positions in `chosen`.
void select_group(std::span<const float> scores, int64_t k, const BitMask& mask, bool eligible,
                  const GroupIndex& groups, int64_t group, BitMask& chosen) {
  int64_t offered = 0;
  const auto visit = [&](auto&& see) {
    for (int64_t place = 0; place < groups.size(); ++place) {
      const int64_t i = groups.flat(group, place);
      if (mask.test(i) == eligible) see(i, order_key(scores[static_cast<size_t>(i)]));
    }
  };
  visit([&](int64_t, uint32_t) { ++offered; });
  k = std::min(k, offered);
  if (k <= 0) return;
  auto [threshold, ties] = kth_largest(visit, k);
  visit([&, t = threshold, left = ties](int64_t i, uint32_t key) mutable {
    if (key > t || (key == t && left-- > 0)) chosen.set(i);
  });
}

int64_t count_in_group(const BitMask& mask, const GroupIndex& groups, int64_t group) {
  if (groups.count() == 1) return mask.count();
  int64_t count = 0;
  for (int64_t place = 0; place < groups.size(); ++place) {
    count += mask.test(groups.flat(group, place)) ? 1 : 0;
  }
  return count;
}

// Draws places of a group until `wanted` more bits are set. Each try has a chance of (bits not set)
// / size; callers keep that above a half.
void draw(Draws& draws, int64_t wanted, const GroupIndex& groups, int64_t group, BitMask& mask) {
  const auto size = static_cast<uint64_t>(groups.size());
  while (wanted > 0) {
    const auto place = static_cast<int64_t>(draws.below(size));
    wanted -= mask.insert(groups.flat(group, place)) ? 1 : 0;
  }
}

// Grows one group to `target` by drawing among the free places listed one by one: for groups that
// are more than half full, where blind draws would mostly miss.
void grow_listed(Draws& draws, int64_t wanted, const GroupIndex& groups, int64_t group,
                 BitMask& mask) {
  std::vector<int64_t> free;
  for (int64_t place = 0; place < groups.size(); ++place) {
    const int64_t i = groups.flat(group, place);
    if (!mask.test(i)) free.push_back(i);
  }
  for (size_t n = 0; static_cast<int64_t>(n) < wanted; ++n) {  // a partial Fisher–Yates shuffle
    const size_t other = n + static_cast<size_t>(draws.below(free.size() - n));
    std::swap(free[n], free[other]);
    mask.set(free[n]);
  }
}

}  // namespace

int64_t target_nnz(float sparsity, int64_t numel) {
  const float clamped = std::clamp(sparsity, 0.0f, 1.0f);
  const auto count = static_cast<int64_t>((1.0f - clamped) * static_cast<float>(numel));
  return std::min(count, numel);  // float32 may round numel itself up
}

int64_t kept_after_drop(float drop_fraction, int64_t nnz, int64_t groups) {
  const float clamped = std::clamp(drop_fraction, 0.0f, 1.0f);
  const float kept = (1.0f - clamped) * static_cast<float>(nnz) / static_cast<float>(groups);
  return std::min(static_cast<int64_t>(kept), nnz);
}

std::vector<float> magnitudes(std::span<const float> values) {
  std::vector<float> absolute(values.begin(), values.end());
  take_magnitudes(absolute);
  return absolute;
}

void take_magnitudes(std::span<float> values) {
  for (float& value : values) value = std::abs(value);
}

std::vector<float> products(std::span<const float> a, std::span<const float> b) {
  std::vector<float> absolute(a.size());
  std::ranges::transform(a, b, absolute.begin(), [](float x, float y) { return std::abs(x * y); });
  return absolute;
}

BitMask top_k(std::span<const float> scores, int64_t per_group, const BitMask& allowed,
              const GroupIndex& groups) {
  BitMask chosen = BitMask::zeros(allowed.size());
  for (int64_t group = 0; group < groups.count(); ++group) {
    select_group(scores, per_group, allowed, true, groups, group, chosen);
  }
  return chosen;
}

BitMask top_k(std::span<const float> scores, int64_t count) { return largest_mask(scores, count); }

BitMask drop_minimum(std::span<const float> scores, int64_t per_group, const BitMask& mask,
                     const GroupIndex& groups) {
  return top_k(scores, per_group, mask, groups);
}

BitMask grow_maximum(std::span<const float> scores, int64_t per_group, const BitMask& mask,
                     const GroupIndex& groups) {
  BitMask grown = mask;
  for (int64_t group = 0; group < groups.count(); ++group) {
    const int64_t missing = per_group - count_in_group(mask, groups, group);
    select_group(scores, missing, mask, false, groups, group, grown);
  }
  return grown;
}

BitMask grow_random(const CounterRng& rng, int64_t per_group, const BitMask& mask,
                    const GroupIndex& groups) {
  BitMask grown = mask;
  Draws draws(rng);
  for (int64_t group = 0; group < groups.count(); ++group) {
    const int64_t have = count_in_group(mask, groups, group);
    const int64_t wanted = std::min(per_group, groups.size()) - have;
    if (wanted <= 0) continue;
    if (have + wanted <= groups.size() / 2) {
      draw(draws, wanted, groups, group, grown);
    } else {
      grow_listed(draws, wanted, groups, group, grown);
    }
  }
  return grown;
}

}  // namespace lacuna
