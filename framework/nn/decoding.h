// DecodingCache: what the layers of a model remember of a text that is read token by token.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace lacuna {

class Module;

/// Keys and values of the tokens that each attention layer has seen, so that the next token costs
/// what one token costs. Of one text: batches are of one example.
class DecodingCache {
 public:
  /// Of one layer: a row for each token seen.
  struct Seen {
    std::vector<float> keys, values;
  };

  /// Tokens seen so far: the position of the next one.
  int64_t length() const { return length_; }
  Seen& of(const Module& layer) { return seen_[&layer]; }
  /// After each forward, when all layers have seen its tokens.
  void advance(int64_t tokens) { length_ += tokens; }
  /// Forgets the text.
  void clear() {
    seen_.clear();
    length_ = 0;
  }

 private:
  int64_t length_ = 0;
  std::map<const Module*, Seen> seen_;
};

/// While it lives, modules that run in this thread go on from the text of the cache. *Lifetime:*
/// the cache outlives it.
class Decoding {
 public:
  explicit Decoding(DecodingCache& cache);
  ~Decoding();
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

 private:
  DecodingCache* saved_;
};

/// The cache of the innermost scope of this thread; null if there is none.
DecodingCache* decoding_cache();

}  // namespace lacuna
