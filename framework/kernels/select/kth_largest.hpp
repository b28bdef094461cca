// The k-th largest of an array, and the mask of the k largest: exact, in a few passes.
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

/// The k-th largest key, and how many of the k largest are equal to it.
struct KthLargest {
  uint32_t key = 0;
  int64_t ties = 0;

  friend bool operator==(const KthLargest&, const KthLargest&) = default;
};

/// *Requires* 1 ≤ k ≤ keys.size(). *Cost:* a sample gives bounds; one vectorized pass, and the same
/// on the tenth or so within the bounds. If the bounds are wrong, two histograms. Memory for an
/// eighth of the keys, or for those that share their first 12 bits with the result.
KthLargest kth_largest(std::span<const uint32_t> keys, int64_t k);
/// The k-th largest of the keys of scores.
KthLargest kth_largest(std::span<const float> scores, int64_t k);

/// One bit for each of the k scores with the largest keys; of equal ones the first. All bits if
/// there are no more than k, none if k ≤ 0. *Cost:* that of `kth_largest` and a vectorized pass.
BitMask largest_mask(std::span<const float> scores, int64_t k);

}  // namespace lacuna
