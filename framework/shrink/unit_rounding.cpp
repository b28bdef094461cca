#include "lacuna/framework/shrink/unit_rounding.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lacuna/framework/shrink/unit_choice.hpp"

namespace lacuna {
namespace {

// Dense convolutions of more channels compute blocks of 16. Measured with ResNet-20 on one thread
// (AMD Zen 4, AVX-512, ms per step): 16 to 32 to 64 channels 269, with 24 instead of 32 channels
// 300; inner channels of the first stage 14: 286, 16: 268, 10: 266, 8: 250, 6: 243.
constexpr int64_t kChannels = 16, kFewChannels = 8, kNeurons = 8;

struct GroupKind {
  int64_t width = 0;  // of the widest layer that gives units of the group
  bool is_convolution = false, is_heads = false;
};

std::vector<GroupKind> group_kinds(const ModelUnits& units) {
  std::vector<GroupKind> kinds(units.groups.size());
  const auto kind_of = [&](int32_t unit) -> GroupKind* {
    const int32_t group = units.group_of[static_cast<size_t>(unit)];
    return group < 0 ? nullptr : &kinds[static_cast<size_t>(group)];
  };
  for (const UnitGraph::Slice& slice : units.slices) {
    if (slice.is_input || slice.parameter->shape().rank() < 2) continue;
    const std::set<int32_t> distinct(slice.units.begin(), slice.units.end());
    for (const int32_t unit : distinct) {
      GroupKind* kind = kind_of(unit);
      if (kind == nullptr) continue;
      kind->width = std::max(kind->width, static_cast<int64_t>(distinct.size()));
      kind->is_convolution |= slice.parameter->use == WeightUse::Convolution;
    }
  }
  for (const UnitGraph::Size& size : units.sizes) {
    if (size.key != "heads" && size.key != "kv_heads") continue;
    for (const int32_t unit : size.units) {
      if (GroupKind* kind = kind_of(unit)) kind->is_heads = true;
    }
  }
  return kinds;
}

int64_t multiple_of(const GroupKind& kind, const Rounding& rounding) {
  if (kind.is_heads) return 1;
  if (!rounding.is_auto) return rounding.multiple;
  const int64_t of_channels = kind.width > kChannels ? kChannels : kFewChannels;
  return std::min(rounding.multiple, kind.is_convolution ? of_channels : kNeurons);
}

// For each unit, the number of the class whose units lie along the same dimensions.
std::vector<size_t> unit_classes(const ModelUnits& units, size_t& count) {
  std::vector<std::vector<size_t>> slices_of(static_cast<size_t>(units.count));
  for (size_t s = 0; s < units.slices.size(); ++s) {
    const UnitGraph::Units& own = units.slices[s].units;
    for (const int32_t unit : std::set<int32_t>(own.begin(), own.end())) {
      slices_of[static_cast<size_t>(unit)].push_back(s);
    }
  }
  std::map<std::vector<size_t>, size_t> numbers;
  std::vector<size_t> class_of;
  for (const std::vector<size_t>& slices : slices_of) {
    class_of.push_back(numbers.emplace(slices, numbers.size()).first->second);
  }
  count = numbers.size();
  return class_of;
}

KeptUnits without_blocks(const ModelUnits& units, std::span<const std::vector<int32_t>> blocks) {
  KeptUnits kept(static_cast<size_t>(units.count), 1);
  for (const std::vector<int32_t>& block : blocks) {
    for (const int32_t unit : block) kept[static_cast<size_t>(unit)] = 0;
  }
  return kept;
}

}  // namespace

std::vector<int64_t> multiples_of_units(const ModelUnits& units, const Rounding& rounding) {
  const std::vector<GroupKind> kinds = group_kinds(units);
  std::vector<int64_t> multiples;
  for (const int32_t group : units.group_of) {
    multiples.push_back(group < 0 ? 1 : multiple_of(kinds[static_cast<size_t>(group)], rounding));
  }
  for (size_t unit = 0; unit < rounding.of_patterns.size(); ++unit) {
    const int64_t least = rounding.of_patterns[unit];
    multiples[unit] = std::max(least, multiples[unit] / least * least);
  }
  return multiples;
}

std::vector<int64_t> multiples_of_patterns(const ModelUnits& units, const PatternOf& pattern_of) {
  std::vector<int64_t> of_groups(units.groups.size(), 1);
  for (const UnitGraph::Slice& slice : units.slices) {
    const PatternShape pattern = pattern_of(*slice.parameter);
    if (!pattern.is_structured() || slice.dim > 1) continue;
    std::map<int32_t, int64_t> indices;  // of each unit
    for (const int32_t unit : slice.units) ++indices[unit];
    for (const auto& [unit, count] : indices) {
      const int32_t group = units.group_of[static_cast<size_t>(unit)];
      if (group < 0) continue;
      const int64_t divisor = pattern.divisors()[slice.dim];
      int64_t& multiple = of_groups[static_cast<size_t>(group)];
      multiple = std::lcm(multiple, divisor / std::gcd(divisor, count));
    }
  }
  if (std::ranges::all_of(of_groups, [](int64_t multiple) { return multiple == 1; })) return {};
  std::vector<int64_t> multiples;
  for (const int32_t group : units.group_of) {
    multiples.push_back(group < 0 ? 1 : of_groups[static_cast<size_t>(group)]);
  }
  return multiples;
}

std::vector<std::vector<int32_t>> blocks_of_order(const ModelUnits& units,
                                                  std::span<const int32_t> order,
                                                  const std::vector<int64_t>& multiples) {
  size_t count = 0;
  const std::vector<size_t> class_of = unit_classes(units, count);
  std::vector<int64_t> left(count);
  for (const size_t number : class_of) ++left[number];
  std::vector<std::vector<size_t>> places(count);  // in the order, of each class
  for (size_t place = 0; place < order.size(); ++place) {
    places[class_of[static_cast<size_t>(order[place])]].push_back(place);
  }
  std::map<size_t, std::vector<int32_t>> blocks;  // by the place of the middle unit
  for (size_t number = 0; number < count; ++number) {
    const std::vector<size_t>& own = places[number];
    for (size_t first = 0; first < own.size();) {
      const int64_t multiple = multiples[static_cast<size_t>(order[own[first]])];
      const int64_t rest = left[number] % multiple;
      const auto size = static_cast<size_t>(rest == 0 ? multiple : rest);
      if (own.size() - first < size) break;
      std::vector<int32_t>& block = blocks[own[first + size / 2]];
      for (size_t i = 0; i < size; ++i) block.push_back(order[own[first + i]]);
      left[number] -= static_cast<int64_t>(size);
      first += size;
    }
  }
  std::vector<std::vector<int32_t>> sorted;
  for (auto& [place, block] : blocks) sorted.push_back(std::move(block));
  return sorted;
}

std::optional<KeptUnits> keep_within(const ModelUnits& units,
                                     std::span<const std::vector<int32_t>> blocks,
                                     const BudgetSearch& search) {
  const std::optional<size_t> count = count_within(blocks.size(), search.target, [&](size_t first) {
    return search.part(without_blocks(units, blocks.first(first)));
  });
  if (!count) return std::nullopt;
  const std::span<const std::vector<int32_t>> removed = blocks.first(*count);  // none is empty
  KeptUnits kept = without_blocks(units, removed);
  const bool is_coarse =
      std::ranges::any_of(removed, [](const auto& block) { return block.size() > 1; });
  if (!is_coarse) return kept;
  size_t classes = 0;
  const std::vector<size_t> class_of = unit_classes(units, classes);
  const auto class_at = [&](size_t i) { return class_of[static_cast<size_t>(removed[i].front())]; };
  std::vector<uint8_t> is_back(removed.size(), 0);
  // The first block of a layer removes what its width has beyond a multiple: it comes back only
  // after all others.
  const auto is_needed = [&](size_t i) {
    for (size_t j = 0; j < removed.size(); ++j) {
      if (j == i || class_at(j) != class_at(i)) continue;
      if (j < i) return false;
      if (is_back[j] == 0 && removed[j].size() != removed[i].size()) return true;
    }
    return false;
  };
  int refills = search.most_refills;
  for (size_t i = removed.size() - 1; i-- > 0 && refills > 0;) {
    if (is_needed(i)) continue;
    --refills;
    KeptUnits more = kept;
    for (const int32_t unit : removed[i]) more[static_cast<size_t>(unit)] = 1;
    if (search.part(more) > search.target) continue;
    kept = std::move(more);
    is_back[i] = 1;
  }
  return kept;
}

KeptUnits without_all(const ModelUnits& units, std::span<const std::vector<int32_t>> blocks) {
  return without_blocks(units, blocks);
}

RoundedChoice choose_rounded(const ModelUnits& units, const Rounding& rounding,
                             const BlocksFor& blocks, const BudgetSearch& search,
                             double least_use) {
  RoundedChoice best{.rounding = rounding};
  double most = 0.0;
  std::vector<int64_t> tried;
  for (int64_t multiple = rounding.multiple; multiple > 0; multiple /= 2) {
    Rounding finer = rounding;
    finer.multiple = multiple;
    const std::vector<int64_t> multiples = multiples_of_units(units, finer);
    if (multiples != std::exchange(tried, multiples)) {
      std::optional<KeptUnits> kept = keep_within(units, blocks(multiples), search);
      const double part = kept ? search.part(*kept) : 0.0;
      if (kept && (!best.kept || part > most)) {
        best = {.kept = std::move(kept), .rounding = finer};
        most = part;
      }
    }
    if (!rounding.is_auto || (best.kept && most >= least_use * search.target)) break;
  }
  return best;
}

}  // namespace lacuna
