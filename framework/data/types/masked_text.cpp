#include "lacuna/framework/data/types/masked_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/token_sequence.hpp"

namespace lacuna {
namespace {

void require_masking(bool holds, const std::string& what) {
  if (!holds) throw StateError("masked windows of tokens need " + what);
}

CounterRng rng_of_evaluation(uint64_t seed) { return {seed, "hidden tokens"}; }
CounterRng rng_of_training(uint64_t seed, uint64_t epoch) {
  return {seed, "hidden tokens in training", epoch};
}

}  // namespace

MaskedWindows::MaskedWindows(std::shared_ptr<const TokenSequence> tokens, int64_t begin,
                             int64_t end, std::shared_ptr<const Tokenizer> tokenizer,
                             Options options)
    : sequence_(std::move(tokens)),
      begin_(begin),
      end_(end),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)) {
  const WindowOptions& windows = options_.windows;
  const TokenMasking& masking = options_.masking;
  content_ = windows.context - (options_.cls ? 1 : 0) - (options_.sep ? 1 : 0);
  require_masking(sequence_ != nullptr, "a sequence of them, found none");
  require_masking(content_ >= 1,
                  fmt::format("a context with room for a token, found {}", windows.context));
  require_masking(windows.stride >= 1,
                  fmt::format("a stride of at least 1, found {}", windows.stride));
  require_masking(0 <= begin_ && begin_ <= end_ && end_ <= sequence_->size(),
                  fmt::format("a part of the sequence of {} tokens, found [{}, {})",
                              sequence_->size(), begin_, end_));
  require_masking(masking.fraction > 0.0 && masking.fraction < 1.0,
                  fmt::format("a fraction in (0, 1) to hide, found {}", masking.fraction));
  require_masking(0 <= masking.mask_id && masking.mask_id < masking.vocabulary_size,
                  fmt::format("a mask in the vocabulary of {}, found {}", masking.vocabulary_size,
                              masking.mask_id));
  require_masking(std::ranges::is_sorted(masking.special_ids), "ascending special ids");
  const int64_t room = end_ - begin_ - content_;  // the last window that fits
  if (room < 0) {
    throw DataError(
        fmt::format("{} token{} too few for a window of {}; use a longer text (for a held-out "
                    "part, a larger data.validation) or a smaller data.context",
                    end_ - begin_, end_ - begin_ == 1 ? " is" : "s are", content_));
  }
  shape_ = Shape{windows.context};
  regular_ = room / windows.stride + 1;
  size_ = regular_ + (windows.to_the_end && room % windows.stride != 0 ? 1 : 0);
}

// The tokens of an example, and as labels those that may be hidden: what the last window shares
// with the one before it was to be told there.
void MaskedWindows::read_window(int64_t index, std::span<int64_t> ids,
                                std::span<int64_t> labels) const {
  if (index < 0 || index >= size_) {
    throw StateError(
        fmt::format("example {} is out of range: the dataset has {} examples", index, size_));
  }
  const int64_t stride = options_.windows.stride;
  const int64_t first = index < regular_ ? begin_ + index * stride : end_ - content_;
  const size_t front = options_.cls ? 1 : 0;
  const auto content = ids.subspan(front, static_cast<size_t>(content_));
  sequence_->read(first, content);
  std::ranges::copy(content, labels.begin() + static_cast<int64_t>(front));
  if (options_.cls) ids.front() = *options_.cls, labels.front() = kIgnoredLabel;
  if (options_.sep) ids.back() = *options_.sep, labels.back() = kIgnoredLabel;
  if (index < regular_) return;
  const int64_t shared = begin_ + (regular_ - 1) * stride + content_ - first;
  std::fill_n(labels.begin() + static_cast<int64_t>(front), std::max<int64_t>(0, shared),
              kIgnoredLabel);
}

Batch MaskedWindows::masked(std::span<const int64_t> indices, const CounterRng& rng) const {
  const auto context = static_cast<size_t>(options_.windows.context);
  std::vector<int64_t> inputs(indices.size() * context), labels(inputs.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto row = std::span(inputs).subspan(i * context, context),
               expected = std::span(labels).subspan(i * context, context);
    read_window(indices[i], row, expected);
    mask_tokens(row, expected, options_.masking, rng, static_cast<uint64_t>(indices[i]));
  }
  Batch batch;
  batch.size = static_cast<int64_t>(indices.size());
  const Shape shape{batch.size, options_.windows.context};
  batch.labels = IndexTensor(shape, std::move(labels));
  batch.named.emplace("input_ids", IndexTensor(shape, std::move(inputs)));
  return batch;
}

Batch MaskedWindows::gather(std::span<const int64_t> indices) const {
  return masked(indices, rng_of_evaluation(options_.seed));
}

Batch MaskedWindows::gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                                         uint64_t epoch) const {
  return masked(indices, rng_of_training(seed, epoch));
}

DataHash MaskedWindows::hash(int64_t examples, const HashLimits& limits) const {
  const int64_t last = begin_ + (examples - 1) * options_.windows.stride;
  const int64_t end = examples == size_ ? end_ : last + content_;
  return {.size = end - begin_, .inputs = hash_tokens(*sequence_, begin_, end, limits)};
}

MaskedSentences::MaskedSentences(std::shared_ptr<const Dataset> sentences, TokenMasking masking,
                                 uint64_t seed)
    : sentences_(std::move(sentences)), masking_(std::move(masking)), seed_(seed) {}

Batch MaskedSentences::masked(std::span<const int64_t> indices, const CounterRng& rng) const {
  Batch batch = sentences_->gather(indices);
  const IndexTensor given = batch.named.at("input_ids");
  const Shape& shape = given.shape();
  std::vector<int64_t> inputs(given.values().begin(), given.values().end()), labels(inputs);
  const auto there = batch.named.find("attention_mask");
  for (size_t i = 0; there != batch.named.end() && i < labels.size(); ++i) {
    if (there->second.values()[i] == 0) labels[i] = kIgnoredLabel;
  }
  // As long as any example, so that draws do not depend on what the batch is padded to.
  const auto width = static_cast<size_t>(shape[1]);
  const auto longest = static_cast<size_t>(example_shape()[0]);
  std::vector<int64_t> ids(longest), expected(longest);
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<ptrdiff_t>(i * width);
    std::ranges::fill(expected, kIgnoredLabel);
    std::copy_n(inputs.begin() + row, width, ids.begin());
    std::copy_n(labels.begin() + row, width, expected.begin());
    mask_tokens(ids, expected, masking_, rng, static_cast<uint64_t>(indices[i]));
    std::copy_n(ids.begin(), width, inputs.begin() + row);
    std::copy_n(expected.begin(), width, labels.begin() + row);
  }
  batch.labels = IndexTensor(shape, std::move(labels));
  batch.named.insert_or_assign("input_ids", IndexTensor(shape, std::move(inputs)));
  return batch;
}

Batch MaskedSentences::gather(std::span<const int64_t> indices) const {
  return masked(indices, rng_of_evaluation(seed_));
}

Batch MaskedSentences::gather_for_training(std::span<const int64_t> indices, uint64_t seed,
                                           uint64_t epoch) const {
  return masked(indices, rng_of_training(seed, epoch));
}

DataHash MaskedSentences::hash(int64_t examples, const HashLimits& limits) const {
  DataHash hash = sentences_->hash(examples, limits);
  hash.answers = kEmptyHash;
  return hash;
}

}  // namespace lacuna
