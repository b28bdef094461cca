// What a masked language model learns from: MaskedWindows of a long sequence of tokens, and
// MaskedSentences.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lacuna/framework/data/changes/token_masking.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/types/token_windows.hpp"

namespace lacuna {

/// Example i is the tokens from i · stride on, some of them hidden (mask_tokens), which are the
/// labels; all other labels are kIgnoredLabel. With `cls` and `sep` an example is [CLS], `context`
/// − 2 tokens, [SEP]. Batches: `input_ids` and labels, [size, context]; no mask, since nothing is
/// padded.
///
/// gather() hides the same tokens of an example each time, as evaluation wants it;
/// gather_for_training() others in each epoch. Both are pure functions of seed and example.
class MaskedWindows final : public Dataset {
 public:
  struct Options {
    WindowOptions windows = {};
    TokenMasking masking = {};
    std::optional<int64_t> cls = std::nullopt, sep = std::nullopt;
    uint64_t seed = 0;  ///< of what gather() hides
  };

  /// The tokens [begin, end) of a sequence. `tokenizer` may be null.
  /// *Errors:* StateError on options out of range and when the part does not lie in the sequence;
  /// DataError when it is shorter than a window.
  MaskedWindows(std::shared_ptr<const TokenSequence> tokens, int64_t begin, int64_t end,
                std::shared_ptr<const Tokenizer> tokenizer, Options options);

  int64_t size() const override { return size_; }
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override { return options_.masking.vocabulary_size; }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return tokenizer_; }
  /// A class for each token that may be hidden.
  int64_t num_classes() const override { return options_.masking.vocabulary_size; }
  int64_t num_outputs() const override { return 0; }
  TokenLabel token_label() const override { return TokenLabel::Hidden; }
  Batch gather(std::span<const int64_t> indices) const override;
  DataHash hash(int64_t examples, const HashLimits& limits) const override;
  Batch gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                            uint64_t epoch) const override;

 private:
  Batch masked(std::span<const int64_t> indices, const CounterRng& rng) const;
  void read_window(int64_t index, std::span<int64_t> ids, std::span<int64_t> labels) const;

  std::shared_ptr<const TokenSequence> sequence_;
  int64_t begin_, end_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Options options_;
  Shape shape_;
  int64_t content_ = 0;             // tokens of a window that are of the sequence
  int64_t size_ = 0, regular_ = 0;  // examples, and those of them that begin at a stride
};

/// The examples of another dataset of tokens, some of which are hidden (mask_tokens) and are the
/// labels, in place of the other dataset's; all other labels are kIgnoredLabel, those of padding
/// (where `attention_mask` is 0) too. Hides as MaskedWindows does, the same tokens of an example in
/// whatever batch it is.
class MaskedSentences final : public Dataset {
 public:
  /// `seed`: of what gather() hides. *Requires* tokens, and a mask in their vocabulary.
  MaskedSentences(std::shared_ptr<const Dataset> sentences, TokenMasking masking, uint64_t seed);

  int64_t size() const override { return sentences_->size(); }
  const Shape& example_shape() const override { return sentences_->example_shape(); }
  int64_t vocabulary_size() const override { return sentences_->vocabulary_size(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return sentences_->tokenizer(); }
  std::span<const int32_t> lengths() const override { return sentences_->lengths(); }
  /// A class for each token that may be hidden.
  int64_t num_classes() const override { return sentences_->vocabulary_size(); }
  int64_t num_outputs() const override { return 0; }
  TokenLabel token_label() const override { return TokenLabel::Hidden; }
  Batch gather(std::span<const int64_t> indices) const override;
  /// Without the other dataset's labels.
  DataHash hash(int64_t examples, const HashLimits& limits) const override;
  Batch gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                            uint64_t epoch) const override;

 private:
  Batch masked(std::span<const int64_t> indices, const CounterRng& rng) const;

  std::shared_ptr<const Dataset> sentences_;
  TokenMasking masking_;
  uint64_t seed_;
};

}  // namespace lacuna
