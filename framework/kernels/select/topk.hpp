// Exact selection of the k largest of a stream, with bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

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
  /// |score| as bits, which order like |score|, of what `take` gave last.
  std::span<const uint32_t> keys() const { return keys_; }

 private:
  void shrink();

  int64_t k_;
  int32_t threshold_;           // |score| as bits must be above it
  std::vector<uint32_t> keys_;  // |score| as bits
  std::vector<int64_t> indices_;
  std::vector<uint32_t> scratch_;  // survivors of a chunk: keys, then offsets
};

}  // namespace lacuna
