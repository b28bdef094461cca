#include "lacuna/sparsity/masks/random_growth.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "lacuna/framework/kernels/select/draws.hpp"
#include "lacuna/sparsity/masks/group_counts.hpp"

namespace lacuna {
namespace {

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

/// A set of flat indices by open addressing, for draws from matrices too large for a bit each.
/// *Memory:* 1.25 to 2.5 slots for each.
template <class Slot>
class DrawnSet {
 public:
  explicit DrawnSet(int64_t expected)
      : slots_(std::bit_ceil(static_cast<size_t>(expected + expected / 4 + 1)), kEmpty) {}

  /// False when it was there.
  bool insert(int64_t index) {
    const auto value = static_cast<Slot>(index);
    const size_t last = slots_.size() - 1;
    size_t at =
        static_cast<size_t>(static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u >> 17) & last;
    for (; slots_[at] != kEmpty; at = (at + 1) & last) {
      if (slots_[at] == value) return false;
    }
    slots_[at] = value;
    return true;
  }

 private:
  static constexpr Slot kEmpty = std::numeric_limits<Slot>::max();
  std::vector<Slot> slots_;
};

// The draws of grow_random over bits, where no group ends more than half full.
template <class Slot>
std::vector<int64_t> draw_into_set(const CounterRng& rng, const std::vector<int64_t>& wanted,
                                   const Positions& present, const GroupIndex& groups) {
  const int64_t total = std::accumulate(wanted.begin(), wanted.end(), int64_t{0});
  DrawnSet<Slot> drawn(total);
  std::vector<int64_t> grown;
  grown.reserve(static_cast<size_t>(total));
  Draws draws(rng);
  for (size_t g = 0; g < wanted.size(); ++g) {
    for (int64_t left = wanted[g]; left > 0;) {
      const auto place = static_cast<int64_t>(draws.below(static_cast<uint64_t>(groups.size())));
      const int64_t flat = groups.flat(static_cast<int64_t>(g), place);
      if (present.contains(flat) || !drawn.insert(flat)) continue;
      grown.push_back(flat);
      --left;
    }
  }
  return grown;
}

// Whether blind draws serve every group: they mostly hit where it ends half full at most.
bool ends_half_full(int64_t per_group, const GroupIndex& groups) {
  return std::min(per_group, groups.size()) <= groups.size() / 2;
}

}  // namespace

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

Positions internal::grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                                const GroupIndex& groups, Membership membership) {
  if (membership == Membership::Bits) {
    return Positions::of(Shape{present.rows(), present.columns()},
                         lacuna::grow_random(rng, per_group, present.to_mask(), groups));
  }
  const std::vector<int64_t> wanted = missing(per_group, present, groups);
  const bool fits = present.rows() * present.columns() <= std::numeric_limits<uint32_t>::max();
  return present.with(fits ? draw_into_set<uint32_t>(rng, wanted, present, groups)
                           : draw_into_set<uint64_t>(rng, wanted, present, groups));
}

Positions grow_random(const CounterRng& rng, int64_t per_group, const Positions& present,
                      const GroupIndex& groups) {
  constexpr int64_t kMostBits = int64_t{1} << 30, kFewBits = int64_t{1} << 23;
  const int64_t numel = present.rows() * present.columns();
  const int64_t count = std::max(present.count(), per_group * groups.count());
  const bool bits_are_cheap = numel <= kFewBits || numel / 64 <= count;  // 8 bytes a nonzero
  const bool bits = !ends_half_full(per_group, groups) || (numel <= kMostBits && bits_are_cheap);
  return internal::grow_random(rng, per_group, present, groups,
                               bits ? internal::Membership::Bits : internal::Membership::HashSet);
}

}  // namespace lacuna
