// The k-th largest of an array, and which elements are the k largest: exact, in a few passes.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "lacuna/framework/core/bit_mask.h"

namespace lacuna {

/// Orders floats as unsigned integers: NaN is 0, then −∞ … +∞, with −0 equal to +0.
inline uint32_t order_key(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// The k-th largest key of some, and how many of the k largest are equal to it.
struct KthLargest {
  uint32_t key = 0;
  int64_t ties = 0;

  friend bool operator==(const KthLargest&, const KthLargest&) = default;
};

/// *Requires* 1 ≤ k ≤ keys.size(). *Cost:* a sample tells within which bounds it lies; one pass by
/// vectors, and the same among the tenth or so within. Where the sample deceives, two histograms.
/// Memory for an eighth as many keys, or as many as share their first 12 bits with the one sought.
KthLargest kth_largest(std::span<const uint32_t> keys, int64_t k);
/// The k-th largest of the keys of scores.
KthLargest kth_largest(std::span<const float> scores, int64_t k);

/// A bit for each of the k scores whose keys are largest; of equal ones the first. All where there
/// are no more, none where k ≤ 0. *Cost:* that of `kth_largest`, and a pass by vectors.
BitMask largest_mask(std::span<const float> scores, int64_t k);

}  // namespace lacuna
