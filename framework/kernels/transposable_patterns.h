// The 90 patterns of a tile of 4 × 4 with two weights in each row and column, in classes.
//
// The upper two rows have some number of weights in each column, the lower two rows what is missing
// to two. Patterns of one class agree in these numbers, so that any upper half of a class goes with
// any lower half: the best of a class is the best of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lacuna {

/// Two rows: the pairs of columns that each has, as indices into kColumnPairs.
struct HalfPattern {
  uint8_t first = 0, second = 0;
};

struct PatternClass {
  std::array<HalfPattern, 6> upper = {}, lower = {};
  int uppers = 0, lowers = 0;
};

/// Bits of the columns 01, 02, 03, 12, 13, 23.
inline constexpr std::array<uint8_t, 6> kColumnPairs = {3, 5, 9, 6, 10, 12};
inline constexpr int kPatternClasses = 19;

/// Weights in each column of two rows, two bits a column.
constexpr uint32_t column_counts(HalfPattern half) {
  uint32_t counts = 0;
  for (uint32_t c = 0; c < 4; ++c) {
    counts += (kColumnPairs[half.first] >> c & 1u) << (2 * c);
    counts += (kColumnPairs[half.second] >> c & 1u) << (2 * c);
  }
  return counts;
}

constexpr std::array<PatternClass, kPatternClasses> pattern_classes() {
  std::array<PatternClass, kPatternClasses> classes = {};
  std::array<uint32_t, kPatternClasses> counts = {};
  int known = 0;
  for (uint8_t half = 0; half < 36; ++half) {
    const HalfPattern upper{static_cast<uint8_t>(half / 6), static_cast<uint8_t>(half % 6)};
    int at = 0;
    while (at < known && counts[static_cast<std::size_t>(at)] != column_counts(upper)) ++at;
    auto& in = classes[static_cast<std::size_t>(at)];
    if (at == known) counts[static_cast<std::size_t>(known++)] = column_counts(upper);
    in.upper[static_cast<std::size_t>(in.uppers++)] = upper;
  }
  for (std::size_t at = 0; at < classes.size(); ++at) {
    for (uint8_t half = 0; half < 36; ++half) {
      const HalfPattern lower{static_cast<uint8_t>(half / 6), static_cast<uint8_t>(half % 6)};
      if (column_counts(lower) + counts[at] != 0xaa) continue;  // two in each column
      classes[at].lower[static_cast<std::size_t>(classes[at].lowers++)] = lower;
    }
  }
  return classes;
}

inline constexpr std::array<PatternClass, kPatternClasses> kClasses = pattern_classes();

/// The bits of a half: four for each row.
constexpr uint32_t half_bits(HalfPattern half) {
  return kColumnPairs[half.first] | static_cast<uint32_t>(kColumnPairs[half.second]) << 4;
}

/// Sums of two of a row's columns, for each row, in the order of kColumnPairs.
using PairSums = std::array<std::array<float, 6>, 4>;

/// The best pattern by sums that are not negative, four bits a row, of those that hold all of
/// `kept`; equal ones in the order of TransposableSelection::Exact. 0 where no pattern holds them.
constexpr uint32_t best_pattern(const PairSums& pairs, uint32_t kept) {
  struct Half {
    float sum = -1.0f;
    uint32_t bits = 0;
  };
  const auto best_half = [](const std::array<HalfPattern, 6>& members, int count,
                            const std::array<float, 6>& first, const std::array<float, 6>& second,
                            uint32_t wanted) {
    Half best;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const float sum = first[members[i].first] + second[members[i].second];
      const uint32_t bits = half_bits(members[i]);
      if (sum > best.sum && (bits & wanted) == wanted) best = {sum, bits};
    }
    return best;
  };
  float most = -1.0f;
  uint32_t best = 0;
  for (const PatternClass& in : kClasses) {
    const Half upper = best_half(in.upper, in.uppers, pairs[0], pairs[1], kept & 0xff);
    const Half lower = best_half(in.lower, in.lowers, pairs[2], pairs[3], kept >> 8);
    if (upper.bits == 0 || lower.bits == 0 || !(upper.sum + lower.sum > most)) continue;
    most = upper.sum + lower.sum;
    best = upper.bits | lower.bits << 8;
  }
  return best;
}

}  // namespace lacuna
