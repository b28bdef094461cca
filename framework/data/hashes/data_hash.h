// Hashes by which data is recognized: by a resumed run, by eval, and by processes that train
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lacuna {

class TokenSequence;

inline constexpr uint64_t kEmptyHash = 0xcbf29ce484222325u;

/// How much of an array counts.
struct HashLimits {
  /// Bytes up to which all values count. Default 1 GiB, of which a hash takes about 0.2 s.
  int64_t all_up_to = int64_t{1} << 30;
  /// Values that count of a larger array: at even distances, the first and the last among them.
  int64_t samples = int64_t{1} << 20;
};

/// A hash of some examples as they are stored, before normalization and augmentation.
struct DataHash {
  int64_t size = 0;  ///< examples; of a text that is cut into windows: tokens
  uint64_t inputs = kEmptyHash;
  uint64_t answers = kEmptyHash;  ///< of labels or targets
  friend bool operator==(const DataHash&, const DataHash&) = default;
};

/// Those of a run's splits; none of what is not there, and of a validation split that is held out
/// of the training examples, which are hashed whole.
struct SplitHashes {
  std::optional<DataHash> train = {}, validation = {}, test = {};
  friend bool operator==(const SplitHashes&, const SplitHashes&) = default;
};

/// A hash with one more word. For a given hash, different words give different hashes, so that one
/// changed value among those that count always changes the result.
uint64_t joined_hash(uint64_t hash, uint64_t word);

/// A hash of the values' bits and their number, the same on every machine and for any number of
/// threads. `before`: of what comes before them.
uint64_t hash_values(std::span<const uint8_t> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);
uint64_t hash_values(std::span<const float> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);
uint64_t hash_values(std::span<const int64_t> values, const HashLimits& limits = {},
                     uint64_t before = kEmptyHash);

/// The same of the tokens [begin, end) of a sequence, at four bytes each. The samples are taken 64
/// next to each other: of a mapped file, each of them may be a page to read.
uint64_t hash_tokens(const TokenSequence& tokens, int64_t begin, int64_t end,
                     const HashLimits& limits = {});

/// Number i of `count` numbers from 0 to `size` − 1 at even distances, the first and the last among
/// them; i itself where count ≥ size. *Requires* size ≥ 1 and 0 ≤ i < count ≤ 2³¹.
int64_t evenly_spread(int64_t i, int64_t count, int64_t size);

}  // namespace lacuna
