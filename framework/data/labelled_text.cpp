#include "lacuna/framework/data/labelled_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/data/formats/csv_records.h"
#include "lacuna/framework/data/formats/text_file.h"
#include "lacuna/framework/data/masked_text.h"
#include "lacuna/framework/data/tokenizer_keys.hpp"
#include "lacuna/framework/text/character_tokenizer.h"
#include "lacuna/framework/text/utf8.h"

namespace lacuna {

std::vector<int64_t> encode_example(const Tokenizer& tokenizer, std::string_view sentence,
                                    int64_t max_length) {
  const auto cls = tokenizer.find("[CLS]"), sep = tokenizer.find("[SEP]");
  const int64_t room = max_length - (cls ? 1 : 0) - (sep ? 1 : 0);
  if (room < 1) {
    throw StateError(
        fmt::format("a length of {} leaves no room for a token of the sentence", max_length));
  }
  std::vector<int64_t> ids = tokenizer.encode(sentence);
  if (static_cast<int64_t>(ids.size()) > room) ids.resize(static_cast<size_t>(room));
  if (cls) ids.insert(ids.begin(), *cls);
  if (sep) ids.push_back(*sep);
  return ids;
}

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
  require_ids(ids, vocabulary_size());
  begins_.push_back(static_cast<int64_t>(ids_.size()));
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  labels_.push_back(label);
}

int64_t LabelledText::vocabulary_size() const { return tokenizer_->vocabulary_size(); }

Batch LabelledText::gather(std::span<const int64_t> indices) const {
  int64_t longest = 0;
  for (const int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw StateError(
          fmt::format("example {} was asked for of a dataset of {} examples", index, size()));
    }
    longest = std::max<int64_t>(longest, lengths_[static_cast<size_t>(index)]);
  }
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> inputs(static_cast<size_t>(count * longest), padding_);
  std::vector<int64_t> mask(inputs.size(), 0), labels;
  for (int64_t row = 0; row < count; ++row) {
    const auto index = static_cast<size_t>(indices[static_cast<size_t>(row)]);
    std::copy_n(ids_.begin() + begins_[index], lengths_[index], inputs.begin() + row * longest);
    std::fill_n(mask.begin() + row * longest, lengths_[index], 1);
    labels.push_back(labels_[index]);
  }
  Batch batch;
  batch.size = count;
  batch.labels = IndexTensor(Shape{count}, std::move(labels));
  batch.named.emplace("input_ids", IndexTensor(Shape{count, longest}, std::move(inputs)));
  batch.named.emplace("attention_mask", IndexTensor(Shape{count, longest}, std::move(mask)));
  return batch;
}

namespace {

// Where label and sentence stand in a file.
struct TextFormat {
  std::optional<std::string> text_column, label_column;  // both: a CSV file
  char delimiter = ',';
};

struct Sentence {
  int64_t label = 0;
  std::string text;
  std::string place;  // "file:line"
};

int64_t parse_label(std::string_view text, const std::string& place) {
  int64_t label = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (text.empty() || stop != text.data() + text.size() || error != std::errc() || label < 0 ||
      label >= kMaxClasses) {
    throw DataError(fmt::format("{}: expected a label, an integer from 0 to {}, found '{}'", place,
                                kMaxClasses - 1, text.substr(0, 40)));
  }
  return label;
}

std::vector<Sentence> read_lines(const std::string& path, std::string_view text) {
  std::vector<Sentence> sentences;
  const size_t last = text.find_last_not_of("\r\n");
  text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string place = fmt::format("{}:{}", path, number);
    const size_t gap = line.find_first_of(" \t");
    if (gap == std::string_view::npos) {
      throw DataError(fmt::format(
          "{}: expected a label, a space or tab, and a sentence, found '{}' (of CSV, give "
          "data.text_column and data.label_column)",
          place, line.substr(0, 40)));
    }
    sentences.push_back(
        {parse_label(line.substr(0, gap), place), std::string(line.substr(gap + 1)), place});
  }
  return sentences;
}

size_t find_column(const std::string& path, const std::vector<std::string>& columns,
                   const std::string& name) {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) {
    throw DataError(path + ": no column '" + name + "'; " + suggest_name(name, columns));
  }
  return static_cast<size_t>(found - columns.begin());
}

std::vector<Sentence> read_table(const std::string& path, std::string_view text,
                                 const TextFormat& format) {
  CsvRecords records(path, text, format.delimiter);
  std::vector<CsvField> fields;
  std::vector<std::string> columns;
  if (records.next(fields)) {
    for (const CsvField& field : fields) columns.push_back(unescape_csv(field.text));
  }
  const size_t text_at = find_column(path, columns, *format.text_column);
  const size_t label_at = find_column(path, columns, *format.label_column);
  std::vector<Sentence> sentences;
  while (records.next(fields)) {
    if (fields.size() != columns.size()) {
      records.fail(fields.front(),
                   fmt::format("expected {} fields, found {}", columns.size(), fields.size()));
    }
    const CsvField& label = fields[label_at];
    const std::string place = fmt::format("{}:{}", path, label.line);
    sentences.push_back(
        {parse_label(label.text, place), unescape_csv(fields[text_at].text), place});
  }
  return sentences;
}

std::vector<Sentence> read_sentences(const std::string& path, const TextFormat& format) {
  const std::string text = read_text_file(path);
  std::vector<Sentence> sentences =
      format.text_column ? read_table(path, text, format) : read_lines(path, text);
  if (sentences.empty()) throw DataError(path + ": there are no sentences in the file");
  return sentences;
}

TextFormat read_format(const Config& data) {
  TextFormat format{.text_column = data.optional<std::string>("text_column"),
                    .label_column = data.optional<std::string>("label_column")};
  if (format.text_column.has_value() != format.label_column.has_value()) {
    data.get(format.text_column ? "text_column" : "label_column")
        .error("text_column and label_column go together: each names a column of a CSV file");
  }
  if (!format.text_column) return format;
  const auto delimiter = data.get<std::string>("delimiter", ",");
  if (delimiter.size() != 1 || delimiter.find_first_of("\"\r\n") != std::string::npos) {
    data.get("delimiter").fail("one character that is no quote and no end of a line");
  }
  format.delimiter = delimiter.front();
  return format;
}

// The tokenizer that was given, or one whose vocabulary is that of the training sentences.
TokenizerPtr tokenizer_for(const TokenizerChoice& choice, const std::string& path,
                           const std::vector<Sentence>& sentences, const std::string& mask) {
  if (choice.given != nullptr) return choice.given;
  std::string text;
  WordCounter counter(choice.words);
  for (const Sentence& sentence : sentences) {
    naming(sentence.place, [&] { require_utf8(sentence.text); });
    if (choice.kind == "words") {
      counter.add(sentence.text);
    } else {
      text += sentence.text;
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

std::shared_ptr<const Dataset> encoded(const std::vector<Sentence>& sentences,
                                       const TokenizerPtr& tokenizer, int64_t max_length,
                                       int64_t num_classes) {
  auto dataset = std::make_shared<LabelledText>(tokenizer, max_length, num_classes);
  for (const Sentence& sentence : sentences) {
    naming(sentence.place, [&] {
      if (sentence.label >= num_classes) {
        throw DataError(fmt::format("label {} is outside of [0, {})", sentence.label, num_classes));
      }
      const std::vector<int64_t> ids = encode_example(*tokenizer, sentence.text, max_length);
      if (ids.empty()) throw DataError("there are no tokens in the sentence");
      dataset->add(ids, sentence.label);
    });
  }
  return dataset;
}

// The sentences, tokens of them hidden where that is asked for.
std::shared_ptr<const Dataset> masked(std::shared_ptr<const Dataset> sentences,
                                      const std::optional<MaskKeys>& mask,
                                      const Tokenizer& tokenizer, const Config& data,
                                      uint64_t seed) {
  if (!mask) return sentences;
  return std::make_shared<const MaskedSentences>(
      std::move(sentences), masking_of(*mask, &tokenizer, tokenizer.vocabulary_size(), data), seed);
}

}  // namespace

DataSplits load_labelled_text(const Config& data, uint64_t seed) {
  const auto train_path = data.required<std::string>("train");
  const auto test_path = data.optional<std::string>("test");
  const TextFormat format = read_format(data);
  const std::optional<MaskKeys> mask =
      read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer);
  const std::string mask_token = mask ? mask->token : std::string();
  const TokenizerChoice choice = read_tokenizer(data, "words", ClsKey::Read, mask_token);
  const auto max_length =
      require_at_least(data, "max_length", data.get<int64_t>("max_length", 128), 1);
  const auto classes_key =
      require_at_least(data, "num_classes", data.get<int64_t>("num_classes", 0), 0);
  if (classes_key == 1 || classes_key > kMaxClasses) {
    data.get("num_classes").fail(fmt::format("2 to {}, or 0", kMaxClasses));
  }
  const std::vector<Sentence> train = read_sentences(train_path, format);
  const TokenizerPtr tokenizer = tokenizer_for(choice, train_path, train, mask_token);
  require_bert_tokens(data, *tokenizer);
  const bool has_cls = tokenizer->find("[CLS]").has_value();
  const bool has_sep = tokenizer->find("[SEP]").has_value();
  require_at_least(data, "max_length", max_length, 1 + (has_cls ? 1 : 0) + (has_sep ? 1 : 0));
  const int64_t classes =
      classes_key > 0 ? classes_key : std::ranges::max(train, {}, &Sentence::label).label + 1;

  const auto dataset = [&](const std::vector<Sentence>& sentences) {
    return masked(encoded(sentences, tokenizer, max_length, classes), mask, *tokenizer, data, seed);
  };
  DataSplits splits;
  splits.train = dataset(train);
  const auto split = [&](const std::string& path) { return dataset(read_sentences(path, format)); };
  const Config validation = data.get("validation");
  if (validation.is_scalar() && !validation.is_number()) {
    splits.validation = split(validation.as<std::string>());
    splits.is_held_out = true;
  }
  if (test_path) splits.test = split(*test_path);
  return splits;
}

DataSplits load_labelled_text_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  const TextFormat format = read_format(data);
  const auto max_length = data.get<int64_t>("max_length", 128);
  DataSplits splits;
  splits.is_held_out = true;
  if (known.tokenizer == nullptr) return splits;
  const std::optional<MaskKeys> mask =
      read_mask(data, data.get<std::string>("tokenizer", "words"), MaskOf::Tokenizer);
  for (const auto& [key, split] :
       {std::pair{"validation", &splits.validation}, std::pair{"test", &splits.test}}) {
    const Config path = data.get(key);
    if (!path.is_scalar() || path.is_number()) continue;
    *split = masked(encoded(read_sentences(path.as<std::string>(), format), known.tokenizer,
                            max_length, known.num_classes),
                    mask, *known.tokenizer, data, seed);
  }
  return splits;
}

}  // namespace lacuna
