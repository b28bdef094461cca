#include "lacuna/framework/data/types/labelled_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/formats/sentence_file.hpp"
#include "lacuna/framework/data/types/tokenizer_keys.hpp"

namespace lacuna {
namespace {

using SentenceFilePtr = std::shared_ptr<const SentenceFile>;

// One sentence, or two; `first` is the whole length of one.
EncodedPair encode_texts(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                         int64_t max_length) {
  if (texts.size() > 1) return encode_pair(tokenizer, texts[0], texts[1], max_length);
  EncodedPair one{.ids = encode_example(tokenizer, texts[0], max_length)};
  one.first = static_cast<int64_t>(one.ids.size());
  return one;
}

void require_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index >= 0 && index < size) continue;
    throw StateError(
        fmt::format("example {} is out of range: the dataset has {} examples", index, size));
  }
}

// Of an example's tokens; `first` are those of its first sentence.
template <class Ids>
uint64_t hash_of(const Ids& ids, int64_t first) {
  uint64_t hash = joined_hash(kEmptyHash, ids.size());
  for (const auto id : ids) hash = joined_hash(hash, static_cast<uint64_t>(id));
  return joined_hash(hash, static_cast<uint64_t>(first));
}

// Examples side by side, padded to the longest. encoded(i) is an EncodedPair of example i.
template <class Encoded>
Batch padded_batch(std::span<const int64_t> indices, std::span<const int32_t> lengths,
                   int64_t padding, bool has_types, const Encoded& encoded) {
  int64_t longest = 0;
  for (const int64_t index : indices) {
    longest = std::max<int64_t>(longest, lengths[static_cast<size_t>(index)]);
  }
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> inputs(static_cast<size_t>(count * longest), padding);
  std::vector<int64_t> mask(inputs.size(), 0), types(has_types ? inputs.size() : 0, 0);
  for (int64_t row = 0; row < count; ++row) {
    const EncodedPair example = encoded(indices[static_cast<size_t>(row)]);
    const auto length = static_cast<int64_t>(example.ids.size());
    std::ranges::copy(example.ids, inputs.begin() + row * longest);
    std::fill_n(mask.begin() + row * longest, length, 1);
    if (has_types) {
      std::fill_n(types.begin() + row * longest + example.first, length - example.first, 1);
    }
  }
  const Shape shape{count, longest};
  Batch batch;
  batch.size = count;
  batch.named.emplace("input_ids", IndexTensor(shape, std::move(inputs)));
  batch.named.emplace("attention_mask", IndexTensor(shape, std::move(mask)));
  if (has_types) batch.named.emplace("token_type_ids", IndexTensor(shape, std::move(types)));
  return batch;
}

std::vector<int64_t> labels_at(std::span<const int64_t> indices, std::span<const int64_t> labels) {
  std::vector<int64_t> chosen;
  for (const int64_t index : indices) chosen.push_back(labels[static_cast<size_t>(index)]);
  return chosen;
}

IndexTensor label_tensor(std::span<const int64_t> indices, std::span<const int64_t> labels) {
  return IndexTensor(Shape{std::ssize(indices)}, labels_at(indices, labels));
}

}  // namespace

LabelledText::LabelledText(std::shared_ptr<const Tokenizer> tokenizer, int64_t max_length,
                           int64_t num_classes, std::vector<std::string> class_names)
    : tokenizer_(std::move(tokenizer)),
      num_classes_(num_classes),
      class_names_(std::move(class_names)) {
  if (tokenizer_ == nullptr) throw StateError("sentences need a tokenizer, found none");
  if (max_length < 1) {
    throw StateError(fmt::format("max_length must be at least 1, found {}", max_length));
  }
  shape_ = Shape{max_length};
  padding_ = tokenizer_->find("[PAD]").value_or(0);
}

void LabelledText::add(std::span<const int64_t> ids, int64_t label) {
  if (ids.empty() || static_cast<int64_t>(ids.size()) > shape_[0]) {
    throw StateError(
        fmt::format("a sentence has {} tokens; expected 1 to {}", ids.size(), shape_[0]));
  }
  if (label < 0 || label >= num_classes_) {
    throw StateError(fmt::format("label {} is outside of [0, {})", label, num_classes_));
  }
  if (has_pairs())
    throw StateError("examples of two sentences cannot be mixed with examples of one");
  require_ids(ids, vocabulary_size());
  begins_.push_back(static_cast<int64_t>(ids_.size()));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  labels_.push_back(label);
}

void LabelledText::add_pair(const EncodedPair& pair, int64_t label) {
  if (firsts_.size() != lengths_.size()) {
    throw StateError("examples of one sentence cannot be mixed with examples of two");
  }
  if (pair.first < 0 || pair.first > static_cast<int64_t>(pair.ids.size())) {
    throw StateError(fmt::format("{} of {} tokens cannot belong to the first sentence", pair.first,
                                 pair.ids.size()));
  }
  const std::vector<int32_t> firsts = std::exchange(firsts_, {});
  add(pair.ids, label);
  firsts_ = firsts;
  firsts_.push_back(static_cast<int32_t>(pair.first));
}

DataHash LabelledText::hash(int64_t examples, const HashLimits& limits) const {
  const auto count = static_cast<size_t>(examples);
  DataHash hash{.size = examples};
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<size_t>(begins_[i]), length = static_cast<size_t>(lengths_[i]);
    hash.inputs = joined_hash(hash.inputs, hash_of(std::span(ids_).subspan(begin, length),
                                                   has_pairs() ? firsts_[i] : lengths_[i]));
  }
  hash.answers = hash_values(std::span(labels_).first(count), limits);
  return hash;
}

int64_t LabelledText::vocabulary_size() const { return tokenizer_->vocabulary_size(); }

Batch LabelledText::gather(std::span<const int64_t> indices) const {
  require_indices(indices, size());
  Batch batch = padded_batch(indices, lengths_, padding_, has_pairs(), [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    const auto begin = ids_.begin() + begins_[i];
    EncodedPair example{.ids = {begin, begin + lengths_[i]}};
    if (has_pairs()) example.first = firsts_[i];
    return example;
  });
  batch.labels = label_tensor(indices, labels_);
  return batch;
}

std::vector<int64_t> LabelledText::labels_of(std::span<const int64_t> indices) const {
  require_indices(indices, size());
  return labels_at(indices, labels_);
}

namespace {

// Sentences whose text stays in its file.
class StreamedText final : public Dataset {
 public:
  StreamedText(SentenceFilePtr file, TokenizerPtr tokenizer, int64_t max_length,
               int64_t num_classes, bool has_pairs)
      : file_(std::move(file)),
        tokenizer_(std::move(tokenizer)),
        shape_{max_length},
        num_classes_(num_classes),
        padding_(tokenizer_->find("[PAD]").value_or(0)),
        has_pairs_(has_pairs) {}

  void add(const EncodedPair& example, int64_t label) {
    lengths_.push_back(static_cast<int32_t>(example.ids.size()));
    labels_.push_back(label);
    hashes_.push_back(hash_of(example.ids, example.first));
  }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override { return tokenizer_->vocabulary_size(); }
  TokenizerPtr tokenizer() const override { return tokenizer_; }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return num_classes_; }
  std::vector<std::string> class_names() const override { return file_->class_names(); }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override {
    require_indices(indices, size());
    Batch batch = padded_batch(indices, lengths_, padding_, has_pairs_, [&](int64_t index) {
      return encode_texts(*tokenizer_, file_->texts(index), shape_[0]);
    });
    batch.labels = label_tensor(indices, labels_);
    return batch;
  }
  std::vector<int64_t> labels_of(std::span<const int64_t> indices) const override {
    require_indices(indices, size());
    return labels_at(indices, labels_);
  }
  bool has_labels_at_hand() const override { return true; }
  // As that of LabelledText.
  DataHash hash(int64_t examples, const HashLimits& limits) const override {
    const auto count = static_cast<size_t>(examples);
    DataHash hash{.size = examples};
    for (size_t i = 0; i < count; ++i) hash.inputs = joined_hash(hash.inputs, hashes_[i]);
    hash.answers = hash_values(std::span(labels_).first(count), limits);
    return hash;
  }

 private:
  SentenceFilePtr file_;
  TokenizerPtr tokenizer_;
  Shape shape_;
  int64_t num_classes_ = 0, padding_ = 0;
  bool has_pairs_ = false;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> labels_;
  std::vector<uint64_t> hashes_;  // of the tokens, which are not kept
};

// Calls use(index, example) with all examples of a file.
template <class Use>
void for_each_example(const SentenceFile& file, const Tokenizer& tokenizer, int64_t max_length,
                      int64_t num_classes, const Use& use) {
  for (int64_t i = 0; i < file.size(); ++i) {
    naming(file.place(i), [&] {
      if (file.label(i) >= num_classes) {
        throw DataError(fmt::format("label {} is outside of [0, {})", file.label(i), num_classes));
      }
      const EncodedPair example = encode_texts(tokenizer, file.texts(i), max_length);
      if (example.ids.empty()) throw DataError("there are no tokens in the sentence");
      use(i, example);
    });
  }
}

}  // namespace

std::shared_ptr<const Dataset> sentences_of(SentenceFilePtr file, const TokenizerPtr& tokenizer,
                                            int64_t max_length, int64_t num_classes,
                                            bool is_streamed) {
  const bool has_pairs = file->has_pairs();
  if (is_streamed) {
    auto streamed =
        std::make_shared<StreamedText>(file, tokenizer, max_length, num_classes, has_pairs);
    for_each_example(*file, *tokenizer, max_length, num_classes,
                     [&](int64_t i, const EncodedPair& e) { streamed->add(e, file->label(i)); });
    return streamed;
  }
  auto held =
      std::make_shared<LabelledText>(tokenizer, max_length, num_classes, file->class_names());
  for_each_example(*file, *tokenizer, max_length, num_classes,
                   [&](int64_t i, const EncodedPair& example) {
                     if (has_pairs) {
                       held->add_pair(example, file->label(i));
                     } else {
                       held->add(example.ids, file->label(i));
                     }
                   });
  return held;
}

}  // namespace lacuna
