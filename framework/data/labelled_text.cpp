#include "lacuna/framework/data/labelled_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.h"
#include "lacuna/framework/data/data_checks.hpp"
#include "lacuna/framework/data/formats/sentence_columns.h"
#include "lacuna/framework/data/formats/sentence_file.h"
#include "lacuna/framework/data/masked_text.h"
#include "lacuna/framework/data/tokenizer_keys.hpp"
#include "lacuna/framework/text/character_tokenizer.h"
#include "lacuna/framework/text/utf8.h"

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
        fmt::format("example {} was asked for of a dataset of {} examples", index, size));
  }
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

IndexTensor labels_at(std::span<const int64_t> indices, std::span<const int64_t> labels) {
  std::vector<int64_t> chosen;
  for (const int64_t index : indices) chosen.push_back(labels[static_cast<size_t>(index)]);
  const Shape shape{static_cast<int64_t>(chosen.size())};
  return IndexTensor(shape, std::move(chosen));
}

}  // namespace

LabelledText::LabelledText(std::shared_ptr<const Tokenizer> tokenizer, int64_t max_length,
                           int64_t num_classes)
    : tokenizer_(std::move(tokenizer)), num_classes_(num_classes) {
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
  if (has_pairs()) throw StateError("examples of two sentences stand beside one of one");
  require_ids(ids, vocabulary_size());
  begins_.push_back(static_cast<int64_t>(ids_.size()));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  labels_.push_back(label);
}

void LabelledText::add_pair(const EncodedPair& pair, int64_t label) {
  if (firsts_.size() != lengths_.size()) {
    throw StateError("examples of one sentence stand beside one of two");
  }
  if (pair.first < 0 || pair.first > static_cast<int64_t>(pair.ids.size())) {
    throw StateError(fmt::format("{} of {} tokens cannot be of the first sentence", pair.first,
                                 pair.ids.size()));
  }
  const std::vector<int32_t> firsts = std::exchange(firsts_, {});
  add(pair.ids, label);
  firsts_ = firsts;
  firsts_.push_back(static_cast<int32_t>(pair.first));
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
  batch.labels = labels_at(indices, labels_);
  return batch;
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
  }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const Shape& example_shape() const override { return shape_; }
  int64_t vocabulary_size() const override { return tokenizer_->vocabulary_size(); }
  TokenizerPtr tokenizer() const override { return tokenizer_; }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return num_classes_; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override {
    require_indices(indices, size());
    Batch batch = padded_batch(indices, lengths_, padding_, has_pairs_, [&](int64_t index) {
      return encode_texts(*tokenizer_, file_->texts(index), shape_[0]);
    });
    batch.labels = labels_at(indices, labels_);
    return batch;
  }

 private:
  SentenceFilePtr file_;
  TokenizerPtr tokenizer_;
  Shape shape_;
  int64_t num_classes_ = 0, padding_ = 0;
  bool has_pairs_ = false;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> labels_;
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
  auto held = std::make_shared<LabelledText>(tokenizer, max_length, num_classes);
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

namespace {

void name_columns(const SentenceColumns& columns, DataSplits& splits) {
  splits.columns = columns.texts;
  splits.label_column = columns.label;
}

// Whether text is to stay in its files.
bool read_streamed(const Config& data, const std::string& path) {
  std::error_code unknown;
  const auto size = std::filesystem::file_size(path, unknown);
  const bool is_large =
      !unknown && !path.ends_with(".gz") && static_cast<int64_t>(size) > available_memory() / 4;
  return data.get<bool>("streamed", is_large);
}

// How the sentences of all splits are read.
struct Reading {
  SentenceColumns columns;
  bool is_streamed = false;
  std::optional<MaskKeys> mask;
  int64_t max_length = 0;

  SentenceFilePtr file(const std::string& path) const {
    return std::make_shared<const SentenceFile>(
        path, columns, is_streamed ? TextPlace::OnDisk : TextPlace::InMemory);
  }
};

// A mask that is a token of the sentences could not be told from those that hide one.
void require_no_mask(const SentenceFile& file, const Dataset& sentences, int64_t mask_id,
                     const MaskKeys& keys) {
  constexpr int64_t kAtOnce = 256;
  for (int64_t first = 0; first < sentences.size(); first += kAtOnce) {
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min(sentences.size(), first + kAtOnce); ++i) {
      indices.push_back(i);
    }
    const IndexTensor ids = sentences.gather(indices).named.at("input_ids");
    const auto found = std::ranges::find(ids.values(), mask_id);
    if (found == ids.values().end()) continue;
    const int64_t row = (found - ids.values().begin()) / ids.shape()[1];
    throw DataError(file.place(first + row) + ": " + mask_in_text(keys));
  }
}

// The examples, tokens of them hidden where that is asked for.
std::shared_ptr<const Dataset> dataset_of(SentenceFilePtr file, const Reading& reading,
                                          const TokenizerPtr& tokenizer, int64_t num_classes,
                                          const Config& data, uint64_t seed) {
  const auto sentences =
      sentences_of(file, tokenizer, reading.max_length, num_classes, reading.is_streamed);
  if (!reading.mask) return sentences;
  TokenMasking masking =
      masking_of(*reading.mask, tokenizer.get(), tokenizer->vocabulary_size(), data);
  require_no_mask(*file, *sentences, masking.mask_id, *reading.mask);
  return std::make_shared<const MaskedSentences>(std::move(sentences), std::move(masking), seed);
}

// The tokenizer that was given, or one whose vocabulary is that of the training sentences.
TokenizerPtr tokenizer_for(const TokenizerChoice& choice, const std::string& path,
                           const SentenceFile& sentences, const std::string& mask) {
  if (choice.given != nullptr) return choice.given;
  constexpr size_t kMostText = size_t{1} << 20;
  std::string text;
  WordCounter counter(choice.words);
  for (int64_t i = 0; i < sentences.size(); ++i) {
    for (const std::string& sentence : sentences.texts(i)) {
      naming(sentences.place(i), [&] { require_utf8(sentence); });
      if (choice.kind == "words") {
        counter.add(sentence);
        continue;
      }
      text += sentence;
      if (text.size() < kMostText) continue;
      const CharacterTokenizer seen = CharacterTokenizer::of(text);  // each of its characters once
      text.clear();
      for (int64_t id = 0; id < seen.vocabulary_size(); ++id) text += seen.token(id);
    }
  }
  return naming(path, [&]() -> TokenizerPtr {
    if (choice.kind == "words") return counter.make();
    return std::make_shared<const CharacterTokenizer>(CharacterTokenizer::of(text + mask));
  });
}

void require_bert_tokens(const Config& data, const Tokenizer& tokenizer) {
  if (tokenizer.kind() != "wordpiece") return;
  for (const char* token : {"[PAD]", "[CLS]", "[SEP]"}) {
    if (tokenizer.find(token)) continue;
    throw DataError(data.required<std::string>("vocab") + ": there is no token " + token +
                    ", which sentences are given with");
  }
}

void require_separator(const Config& data, const TokenizerChoice& choice) {
  if (choice.kind == "words" || (choice.given != nullptr && choice.given->find("[SEP]"))) return;
  data.get("text_column")
      .error("two sentences need a [SEP] between them, which the tokenizer '" + choice.kind +
             "' has not; choose words or wordpiece");
}

}  // namespace

DataSplits load_labelled_text(const Config& data, uint64_t seed) {
  const auto train_path = data.required<std::string>("train");
  if (data.get("test").is_number()) {
    data.get("test").fail("the path of a file (validation alone may be a number)");
  }
  const auto test_path = data.optional<std::string>("test");
  Reading reading{
      .columns = read_sentence_columns(data, kMaxClasses),
      .is_streamed = read_streamed(data, train_path),
      .mask = read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer)};
  const bool has_pairs = reading.columns.texts.size() > 1;
  const std::string mask_token = reading.mask ? reading.mask->token : std::string();
  TokenizerChoice choice = read_tokenizer(data, "words", ClsKey::Read, mask_token);
  choice.words.sep = has_pairs;
  if (has_pairs) require_separator(data, choice);
  reading.max_length =
      require_at_least(data, "max_length", data.get<int64_t>("max_length", 128), 1);
  const auto classes_key =
      require_at_least(data, "num_classes", data.get<int64_t>("num_classes", 0), 0);
  if (classes_key == 1 || classes_key > kMaxClasses) {
    data.get("num_classes").fail(fmt::format("2 to {}, or 0", kMaxClasses));
  }
  const SentenceFilePtr train = reading.file(train_path);
  const TokenizerPtr tokenizer = tokenizer_for(choice, train_path, *train, mask_token);
  require_bert_tokens(data, *tokenizer);
  const int64_t specials = (tokenizer->find("[CLS]") ? 1 : 0) + (tokenizer->find("[SEP]") ? 1 : 0);
  require_at_least(data, "max_length", reading.max_length, specials + (has_pairs ? 3 : 1));
  const int64_t classes = classes_key > 0 ? classes_key : train->largest_label() + 1;
  if (train->has_labels() && !reading.mask) {
    std::vector<int64_t> labels(static_cast<size_t>(train->size()));
    for (int64_t i = 0; i < train->size(); ++i) labels[static_cast<size_t>(i)] = train->label(i);
    tell_label_gaps(data, labels, classes);
  }

  const auto dataset = [&](SentenceFilePtr file) {
    return dataset_of(std::move(file), reading, tokenizer, classes, data, seed);
  };
  DataSplits splits;
  name_columns(reading.columns, splits);
  splits.train = dataset(train);
  const Config validation = data.get("validation");
  if (validation.is_scalar() && !validation.is_number()) {
    splits.validation = dataset(reading.file(validation.as<std::string>()));
    splits.is_held_out = true;
  }
  if (test_path) splits.test = dataset(reading.file(*test_path));
  return splits;
}

DataSplits load_labelled_text_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  const Reading reading{
      .columns = read_sentence_columns(data, kMaxClasses),
      .is_streamed = data.get<bool>("streamed", false),
      .mask = read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer),
      .max_length = require_at_least(data, "max_length", data.get<int64_t>("max_length", 128), 1)};
  DataSplits splits;
  name_columns(reading.columns, splits);
  splits.is_held_out = true;
  if (known.tokenizer == nullptr) return splits;
  for (const auto& [key, split] :
       {std::pair{"validation", &splits.validation}, std::pair{"test", &splits.test}}) {
    const Config path = data.get(key);
    if (!path.is_scalar() || path.is_number()) continue;
    *split = dataset_of(reading.file(path.as<std::string>()), reading, known.tokenizer,
                        known.num_classes, data, seed);
  }
  return splits;
}

}  // namespace lacuna
