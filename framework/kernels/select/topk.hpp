// Exact selection of the k largest of a stream, with bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// Collects the k largest |score| of a stream; at equal |score|, the earlier ones. NaN is never
/// collected. *Memory:* 12 bytes for each of about 2k + 12288 entries.
class TopKCollector {
 public:
  /// Ignores scores whose |score| is at most `floor`: a guess of the k-th largest saves collecting
  /// scores that are dropped later. Negative: no score is ignored.
  explicit TopKCollector(int64_t k, float floor = -1.0f);

  /// Adds the scores at indices first, first + 1, …; indices must ascend from call to call.
  void offer(std::span<const float> scores, int64_t first);
  /// Entries collected; at least k once k scores above the floor were added.
  int64_t size() const { return static_cast<int64_t>(keys_.size()); }
  /// Indices of the k largest of all added scores (or fewer, if fewer are above the floor),
  /// ascending.
  std::vector<int64_t> take();
  /// |score| as bits, which order like |score|, for the result of the last `take`.
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
