#include "lacuna/framework/data/types/token_windows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/token_sequence.hpp"

namespace lacuna {
namespace {

void require_windows(bool holds, const std::string& what) {
  if (!holds) throw StateError("windows of tokens need " + what);
}

}  // namespace

TokenWindows::TokenWindows(std::shared_ptr<const TokenSequence> tokens, int64_t begin, int64_t end,
                           int64_t vocabulary_size, std::shared_ptr<const Tokenizer> tokenizer,
                           WindowOptions options)
    : sequence_(std::move(tokens)),
      begin_(begin),
      end_(end),
      vocabulary_size_(vocabulary_size),
      tokenizer_(std::move(tokenizer)),
      options_(options) {
  require_windows(sequence_ != nullptr, "a sequence of them, found none");
  require_windows(options_.context >= 1,
                  fmt::format("a context of at least 1, found {}", options_.context));
  require_windows(options_.stride >= 1,
                  fmt::format("a stride of at least 1, found {}", options_.stride));
  require_windows(vocabulary_size_ >= 1,
                  fmt::format("a vocabulary of at least 1 token, found {}", vocabulary_size_));
  require_windows(0 <= begin_ && begin_ <= end_ && end_ <= sequence_->size(),
                  fmt::format("a part of the sequence of {} tokens, found [{}, {})",
                              sequence_->size(), begin_, end_));
  const int64_t room = this->tokens() - 1 - options_.context;  // the last window that fits
  if (room < 0) {
    throw DataError(fmt::format(
        "{} token{} too few for a window of {} and the token after it; use a longer text (for a "
        "held-out part, a larger data.validation) or a smaller data.context",
        this->tokens(), this->tokens() == 1 ? " is" : "s are", options_.context));
  }
  shape_ = Shape{options_.context};
  regular_ = room / options_.stride + 1;
  size_ = regular_ + (options_.to_the_end && room % options_.stride != 0 ? 1 : 0);
}

Batch TokenWindows::gather(std::span<const int64_t> indices) const {
  const auto context = static_cast<size_t>(options_.context);
  std::vector<int64_t> inputs(indices.size() * context), labels(inputs.size());
  std::vector<int64_t> window(context + 1);
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= size_) {
      throw StateError(
          fmt::format("example {} is out of range: the dataset has {} examples", index, size_));
    }
    const bool is_regular = index < regular_;
    const int64_t first =
        is_regular ? begin_ + index * options_.stride : end_ - 1 - options_.context;
    sequence_->read(first, window);
    const auto row = static_cast<int64_t>(i * context);
    std::copy_n(window.begin(), context, inputs.begin() + row);
    std::copy_n(window.begin() + 1, context, labels.begin() + row);
    if (is_regular) continue;
    const int64_t last_regular = begin_ + (regular_ - 1) * options_.stride;
    const int64_t shared = std::max<int64_t>(0, last_regular + options_.context - first);
    std::fill_n(labels.begin() + row, shared, kIgnoredLabel);
  }
  const auto size = static_cast<int64_t>(indices.size());
  const Shape shape{size, options_.context};
  Batch batch;
  batch.size = size;
  batch.labels = IndexTensor(shape, std::move(labels));
  batch.named.emplace("input_ids", IndexTensor(shape, std::move(inputs)));
  return batch;
}

DataHash TokenWindows::hash(int64_t examples, const HashLimits& limits) const {
  const int64_t last = begin_ + (examples - 1) * options_.stride;
  const int64_t end = examples == size_ ? end_ : last + options_.context + 1;
  return {.size = end - begin_, .inputs = hash_tokens(*sequence_, begin_, end, limits)};
}

}  // namespace lacuna
