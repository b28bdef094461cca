// Hashes that identify data, for resumed runs, for eval, and for processes that train together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lacuna {

class TokenSequence;

inline constexpr uint64_t kEmptyHash = 0xcbf29ce484222325u;

/// How much of an array is hashed.
struct HashLimits {
  /// Arrays of up to this many bytes are hashed completely. Default 1 GiB, which takes about 0.2 s.
  int64_t all_up_to = int64_t{1} << 30;
  /// Number of values that are hashed of a larger array: at even distances, including the first and
  /// the last.
  int64_t samples = int64_t{1} << 20;
};

/// A hash of some examples as they are stored, before normalization and augmentation.
struct DataHash {
  int64_t size = 0;  ///< examples; of a text that is cut into windows: tokens
  uint64_t inputs = kEmptyHash;
  uint64_t answers = kEmptyHash;  ///< of labels or targets
  friend bool operator==(const DataHash&, const DataHash&) = default;
};

/// Hashes of a run's splits; none for a missing split, nor for a validation split that is held out
/// of the training examples, which are hashed as a whole.
struct SplitHashes {
  std::optional<DataHash> train = {}, validation = {}, test = {};
  friend bool operator==(const SplitHashes&, const SplitHashes&) = default;
};

/// A hash with one more word. For a given hash, different words give different hashes, so one
/// changed value among the hashed ones always changes the result.
uint64_t joined_hash(uint64_t hash, uint64_t word);

/// A hash of the values' bits and their number, the same on every machine and for any number of
/// threads. `before`: the hash of the preceding values.
uint64_t hash_values(std::span<const uint8_t> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);
uint64_t hash_values(std::span<const float> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);
uint64_t hash_values(std::span<const int64_t> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);

/// The same for the tokens [begin, end) of a sequence, at four bytes each. The samples are taken 64
/// next to each other: in a mapped file, each sample may have to read a page.
uint64_t hash_tokens(const TokenSequence& tokens, int64_t begin, int64_t end,
                     const HashLimits& limits = {});

/// Number i of `count` numbers from 0 to `size` − 1 at even distances, including the first and the
/// last; i itself where count ≥ size. *Requires* size ≥ 1 and 0 ≤ i < count ≤ 2³¹.
int64_t evenly_spread(int64_t i, int64_t count, int64_t size);

}  // namespace lacuna
