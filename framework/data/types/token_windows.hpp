// TokenWindows: a long sequence of tokens as examples, each a window of it with the next tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "lacuna/framework/data/dataset.h"

namespace lacuna {

class TokenSequence;

/// Which windows of a sequence are examples.
struct WindowOptions {
  /// Tokens in a window. ≥ 1, default 64.
  int64_t context = 64;
  /// Tokens from the beginning of a window to that of the next. ≥ 1; 1, the default, gives every
  /// window there is, so that an order at random draws windows at random. `context` gives windows
  /// that do not overlap.
  int64_t stride = 1;
  /// Whether a last window is added that ends with the sequence, where the others leave tokens
  /// over. What it shares with the window before it has the label kIgnoredLabel, so that with a
  /// stride of `context` each token but the first is predicted once. Default no.
  bool to_the_end = false;
  /// Characters of text that a token stands for, as Dataset::characters_per_label. Default: not
  /// known.
  double characters_per_token = 0.0;
  /// As Dataset::unknown_labels. Default: there is no such token.
  double unknown_tokens = std::numeric_limits<double>::quiet_NaN();
};

/// Example i is the tokens [i · stride, i · stride + context); the label of each is the token after
/// it. Batches: `input_ids` and labels, [size, context]; no mask, since nothing is padded.
class TokenWindows final : public Dataset {
 public:
  /// The tokens [begin, end) of a sequence. `tokenizer` may be null.
  /// *Errors:* StateError on options out of range and when the part does not lie in the sequence;
  /// DataError when it is shorter than context + 1 tokens.
  TokenWindows(std::shared_ptr<const TokenSequence> tokens, int64_t begin, int64_t end,
               int64_t vocabulary_size, std::shared_ptr<const Tokenizer> tokenizer,
               WindowOptions options);

  int64_t size() const override { return size_; }
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override { return vocabulary_size_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  /// A class for each token that may come next.
  int64_t num_classes() const override { return vocabulary_size_; }
  int64_t num_outputs() const override { return 0; }
  TokenLabel token_label() const override { return TokenLabel::Next; }
  double characters_per_label() const override { return options_.characters_per_token; }
  double unknown_labels() const override { return options_.unknown_tokens; }
  /// *Errors:* DataError also on a token outside of the vocabulary.
  Batch gather(std::span<const int64_t> indices) const override;
  DataHash hash(int64_t examples, const HashLimits& limits) const override;

  /// Tokens that the examples are windows of.
  int64_t tokens() const { return end_ - begin_; }

 private:
  std::shared_ptr<const TokenSequence> sequence_;
  int64_t begin_, end_, vocabulary_size_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  WindowOptions options_;
  Shape shape_;
  int64_t size_ = 0, regular_ = 0;  // examples, and those of them that begin at a stride
};

}  // namespace lacuna
