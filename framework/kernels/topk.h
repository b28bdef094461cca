// Exact selection of the k largest: by histogram over an array, and streamed with bounded memory.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// Orders floats as unsigned integers: NaN is 0, then −∞ … +∞, with −0 equal to +0.
inline uint32_t order_key(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// The k-th largest of some keys, and how many of the k largest are equal to it.
struct KthLargest {
  uint32_t key = 0;
  int64_t ties = 0;
};

/// *Requires* 1 ≤ k ≤ keys.size(). *Cost:* two histograms of 12 bits, the second among the keys of
/// one bin; memory for as many keys.
KthLargest kth_largest(std::span<const uint32_t> keys, int64_t k);
/// The same of the keys of scores.
KthLargest kth_largest(std::span<const float> scores, int64_t k);

/// Collects the k largest |score| of a stream, at equal |score| those that came first. NaN is never
/// among them. *Memory:* 12 bytes for each of about 2k + 12288 entries.
class TopKCollector {
 public:
  /// Scores whose |score| is at most `floor` are left out: a guess of the k-th largest saves the
  /// collecting of what falls out later. Negative: none is left out.
  explicit TopKCollector(int64_t k, float floor = -1.0f);

  /// Scores at indices first, first + 1, …; indices must ascend from call to call.
  void offer(std::span<const float> scores, int64_t first);
  /// Entries collected; at least k as soon as k scores above the floor were offered.
  int64_t size() const { return static_cast<int64_t>(keys_.size()); }
  /// Indices of the k largest of all that were offered (of fewer, where fewer are above the floor),
  /// ascending.
  std::vector<int64_t> take();

 private:
  void shrink();

  int64_t k_;
  int32_t threshold_;           // |score| as bits must be above it
  std::vector<uint32_t> keys_;  // |score| as bits
  std::vector<int64_t> indices_;
  std::vector<uint32_t> scratch_;  // survivors of a chunk: keys, then offsets
};

}  // namespace lacuna
