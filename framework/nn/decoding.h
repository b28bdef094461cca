// DecodingCache: the state that the layers of a model keep of a text that is read token by token.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace lacuna {

class Module;

/// Keys and values of the tokens that each attention layer has seen, so that the next token costs
/// as much as a single token. For one text: batches have one example.
class DecodingCache {
 public:
  /// The cache of one layer: a row for each token seen.
  struct Seen {
    std::vector<float> keys, values;
  };

  /// Tokens seen so far: the position of the next one.
  int64_t length() const { return length_; }
  Seen& of(const Module& layer) { return seen_[&layer]; }
  /// Called after each forward pass, when all layers have seen its tokens.
  void advance(int64_t tokens) { length_ += tokens; }
  /// Removes the text.
  void clear() {
    seen_.clear();
    length_ = 0;
  }

 private:
  int64_t length_ = 0;
  std::map<const Module*, Seen> seen_;
};

/// While it exists, modules that run in this thread continue the text of the cache. *Lifetime:* the
/// cache outlives it.
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
