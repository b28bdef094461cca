// The `labelled_text` section of a configuration: its keys, and the splits made by them.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/data_checks.hpp"
#include "lacuna/framework/data/formats/sentence_columns.hpp"
#include "lacuna/framework/data/formats/sentence_file.hpp"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/data/types/masked_text.hpp"
#include "lacuna/framework/data/types/tokenizer_keys.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/utf8.hpp"

namespace lacuna {

using SentenceFilePtr = std::shared_ptr<const SentenceFile>;

namespace {

void name_columns(const SentenceColumns& columns, DataSplits& splits) {
  if (!columns.has_header) return;
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

// How the sentences of all splits are read; once the classes are known, with these alone.
struct Reading {
  SentenceColumns columns;
  bool are_classes_known = false;
  bool is_streamed = false;
  std::optional<MaskKeys> mask;
  int64_t max_length = 0;

  SentenceFilePtr file(const std::string& path) const {
    auto read = std::make_shared<const SentenceFile>(
        path, columns, is_streamed ? TextPlace::OnDisk : TextPlace::InMemory);
    if (are_classes_known && !mask) read->require_classes(columns.class_names);
    return read;
  }
};

// A mask that is a token of the sentences could not be distinguished from hidden ones.
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

// The examples, with hidden tokens if that is requested.
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
TokenizerPtr tokenizer_for(const Config& data, const TokenizerChoice& choice,
                           const std::string& path, const SentenceFile& sentences,
                           const std::string& mask) {
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
    if (choice.kind == "words") return words_of(counter, data);
    return character_vocabulary(choice, text + mask);
  });
}

void require_bert_tokens(const Config& data, const Tokenizer& tokenizer) {
  if (tokenizer.kind() != "wordpiece") return;
  for (const char* token : {"[PAD]", "[CLS]", "[SEP]"}) {
    if (tokenizer.find(token)) continue;
    throw DataError(data.required<std::string>("vocab") + ": the vocabulary has no token " + token +
                    ", which every sentence needs");
  }
}

void require_separator(const Config& data, const TokenizerChoice& choice) {
  if (choice.kind == "words" || (choice.given != nullptr && choice.given->find("[SEP]"))) return;
  data.get("text_column")
      .error("two sentences need a [SEP] between them, but the tokenizer '" + choice.kind +
             "' has none; choose words or wordpiece");
}

// The number of names of classes is `num_classes`, and less than that of the sentences.
void require_own_classes(const Config& data, const SentenceFile& train, const std::string& path) {
  const auto names = static_cast<int64_t>(train.class_names().size());
  const auto wanted = data.required<int64_t>("num_classes");
  if (wanted > 0 && names > 0 && names != wanted) {
    data.get("num_classes")
        .error(fmt::format("is {}, and the labels of {} are {} names; leave this key out", wanted,
                           path, names));
  }
  constexpr int64_t kFew = 20;
  if (names < kFew || names < train.size()) return;
  throw DataError(fmt::format(
      "{}: each of the {} sentences has a class of its own, as '{}': is the label in another "
      "column (data.label_column)?",
      path, names, printable(train.class_names().front(), 40)));
}

}  // namespace

DataSplits load_labelled_text(const Config& data, uint64_t seed) {
  const auto train_path = data.required<std::string>("train");
  const std::optional<std::string> test_path = path_of_split(data, "test");
  Reading reading{
      .columns = read_sentence_columns(data, kMaxClasses),
      .is_streamed = read_streamed(data, train_path),
      .mask = read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer)};
  reading.columns.has_missing_labels =
      data.optional<bool>("missing_names").value_or(false) && !reading.mask;
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
  const TokenizerPtr tokenizer = tokenizer_for(data, choice, train_path, *train, mask_token);
  require_bert_tokens(data, *tokenizer);
  const int64_t specials = (tokenizer->find("[CLS]") ? 1 : 0) + (tokenizer->find("[SEP]") ? 1 : 0);
  require_at_least(data, "max_length", reading.max_length, specials + (has_pairs ? 3 : 1));
  if (!reading.mask) {
    require_own_classes(data, *train, train_path);
    reading.columns.class_names = train->class_names();
  }
  reading.are_classes_known = true;
  const auto names = static_cast<int64_t>(train->class_names().size());
  const int64_t classes = classes_key > 0 ? classes_key
                          : names > 0     ? names
                                          : train->largest_label() + 1;
  if (train->has_labels() && !reading.mask && train->class_names().empty()) {
    std::vector<int64_t> labels(static_cast<size_t>(train->size()));
    for (int64_t i = 0; i < train->size(); ++i) labels[static_cast<size_t>(i)] = train->label(i);
    report_label_gaps(data, labels, classes, "or name the labels (class_names: {1: bad, 2: good})");
  }

  const auto dataset = [&](SentenceFilePtr file) {
    return dataset_of(std::move(file), reading, tokenizer, classes, data, seed);
  };
  DataSplits splits;
  name_columns(reading.columns, splits);
  splits.train = dataset(train);
  if (const auto path = path_of_split(data, "validation")) {
    splits.validation = dataset(reading.file(*path));
  }
  if (test_path) splits.test = dataset(reading.file(*test_path));
  return splits;
}

namespace {

DataSplits load_labelled_text_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  Reading reading{
      .columns = read_sentence_columns(data, kMaxClasses),
      .are_classes_known = true,
      .is_streamed = data.get<bool>("streamed", false),
      .mask = read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer),
      .max_length = require_at_least(data, "max_length", data.get<int64_t>("max_length", 128), 1)};
  reading.columns.class_names = known.class_names;
  reading.columns.has_missing_labels =
      data.optional<bool>("missing_names").value_or(false) && !reading.mask;
  DataSplits splits;
  name_columns(reading.columns, splits);
  splits.is_held_out = true;
  if (known.tokenizer == nullptr) return splits;
  for (const auto& [key, split] :
       {std::pair{"validation", &splits.validation}, std::pair{"test", &splits.test}}) {
    const std::optional<std::string> path = path_of_split(data, key);
    if (!path) continue;
    *split =
        dataset_of(reading.file(*path), reading, known.tokenizer, known.num_classes, data, seed);
  }
  return splits;
}

}  // namespace

DatasetType labelled_text_dataset() {
  return {.load = load_labelled_text,
          .paths = {"train", "test", "validation", "vocab", "merges"},
          .load_held_out = load_labelled_text_held_out,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>{"max_length"},
          .new_run_keys = {{"unk", "true"}, {"missing_names", "true"}}};
}

}  // namespace lacuna
