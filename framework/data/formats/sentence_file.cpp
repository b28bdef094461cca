#include "lacuna/framework/data/formats/sentence_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/csv_records.hpp"
#include "lacuna/framework/data/formats/sentence_labels.hpp"
#include "lacuna/framework/data/formats/text_file.hpp"

namespace lacuna {
namespace {

size_t require_column(const std::string& path, const std::vector<std::string>& columns,
                      const std::string& name) {
  const std::optional<size_t> found = find_column(columns, name);
  if (found) return *found;
  const bool is_number = name.find_first_not_of("-0123456789") == std::string::npos;
  throw DataError(path + ": no column '" + name + "'; " + suggest_name(name, columns) +
                  (is_number ? "; if the first line is an example, set data.header: false" : ""));
}

}  // namespace

SentenceFile::SentenceFile(const std::string& path, const SentenceColumns& columns, TextPlace place)
    : path_(path), columns_(columns) {
  if (place == TextPlace::InMemory) {
    held_ = read_text_file(path);
    text_ = held_;
  } else if (path.ends_with(".gz")) {
    throw DataError(
        path +
        ": a compressed file cannot be streamed; decompress it, or set data.streamed: false");
  } else {
    mapped_ = std::make_unique<const MappedFile>(path);
    const std::span<const uint8_t> bytes = mapped_->bytes();
    text_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  read();
}

SentenceFile::SentenceFile(const std::string& name, std::string text,
                           const SentenceColumns& columns)
    : path_(name), columns_(columns), held_(std::move(text)), text_(held_) {
  read();
}

void SentenceFile::read() {
  text_.remove_prefix(byte_order_mark(text_, path_));
  SentenceLabels labels(columns_.num_labels, columns_.class_names, columns_.label_texts);
  if (columns_.texts.empty()) {
    read_lines(text_, labels);
  } else {
    read_table(text_, labels);
  }
  if (rows_.empty()) throw DataError(path_ + ": there are no sentences in the file");
  const std::vector<int32_t> sorted = labels.sort_names();
  class_names_ = labels.names();
  for (Row& row : rows_) {
    if (!sorted.empty()) row.label = sorted[static_cast<size_t>(row.label)];
  }
}

std::string SentenceFile::place_of_line(int64_t line) const {
  return fmt::format("{}:{}", path_, line);
}
std::string SentenceFile::place(int64_t index) const { return place_of_line(row(index).line); }

SentenceFile::Part SentenceFile::part(std::string_view text, std::string_view piece,
                                      int64_t line) const {
  if (piece.size() > std::numeric_limits<uint32_t>::max() ||
      line > std::numeric_limits<uint32_t>::max()) {
    throw DataError(place_of_line(line) + ": a sentence of 4 GiB, or 2³² lines, cannot be read");
  }
  return {static_cast<size_t>(piece.data() - text.data()), static_cast<uint32_t>(piece.size())};
}

namespace {

constexpr std::string_view kFastText = "__label__";

// Whether a line begins as fastText's do. Behind a tab it is a part of the name.
bool is_fast_text(std::string_view line) {
  const size_t gap = line.find_first_of(" \t");
  return line.starts_with(kFastText) && gap != std::string_view::npos && line[gap] == ' ';
}

// A number is followed by a space or tab; names may contain spaces if a tab follows.
size_t end_of_label(std::string_view line) {
  const size_t gap = line.find_first_of(" \t"), tab = line.find('\t');
  if (is_fast_text(line)) return gap;
  const bool is_number =
      line.substr(0, gap).find_first_not_of("+-.0123456789") == std::string_view::npos;
  return is_number || tab == std::string_view::npos ? gap : tab;
}

}  // namespace

LabelText SentenceFile::kind_of_label() const {
  return columns_.has_missing_labels ? LabelText::IntegerOrName : LabelText::Quoted;
}

void SentenceFile::read_lines(std::string_view text, SentenceLabels& labels) {
  const size_t last = text.find_last_not_of("\r\n");
  std::string_view left = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  for (int64_t number = 1; !left.empty(); ++number) {
    const size_t end = left.find('\n');
    std::string_view line = left.substr(0, end);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t gap = end_of_label(line);
    if (gap == std::string_view::npos) {
      throw DataError(fmt::format(
          "{}: expected a label, a space or tab, and a sentence, found '{}' (of CSV, give "
          "data.text_column and data.label_column)",
          place_of_line(number), printable(line, 40)));
    }
    std::string_view label = line.substr(0, gap);
    const std::string_view sentence = line.substr(gap + 1);
    LabelText kind = line[gap] == '\t' ? kind_of_label() : LabelText::Integer;
    if (is_fast_text(line)) {
      kind = LabelText::Name;
      label.remove_prefix(kFastText.size());
      if (sentence.starts_with(kFastText)) {
        throw DataError(place_of_line(number) +
                        ": the sentence has more than one label; expected one for each");
      }
    }
    rows_.push_back({.first = part(text, sentence, number),
                     .second = {},
                     .label = labels.read(label, kind, place_of_line(number)),
                     .line = static_cast<uint32_t>(number)});
  }
}

// By the first record, which names the columns, or is an example of as many.
void SentenceFile::find_columns(CsvRecords& records) {
  const std::vector<std::string> names = column_names(records);
  width_ = names.size();
  if (columns_.has_header) {
    for (const std::string& name : columns_.texts) {
      text_at_.push_back(require_column(path_, names, name));
    }
    has_labels_ = !columns_.label_may_lack || find_column(names, columns_.label).has_value();
    if (has_labels_) label_at_ = require_column(path_, names, columns_.label);
    return;
  }
  if (width_ == 0) return;  // no examples at all
  // If labels may be missing, there may be only sentences.
  has_labels_ = !columns_.label_may_lack || width_ != columns_.texts.size();
  for (size_t i = 0; i < columns_.texts.size(); ++i) {
    text_at_.push_back(has_labels_ ? column_at(path_, columns_.texts[i], width_) : i);
  }
  if (!has_labels_) return;
  label_at_ = column_at(path_, columns_.label, width_);
  const bool is_text = std::ranges::find(text_at_, label_at_) != text_at_.end();
  if (is_text || (has_pairs() && text_at_[0] == text_at_[1])) {
    throw DataError(fmt::format("{}: one of {} is given as {}", path_,
                                plural(static_cast<int64_t>(width_), "column"),
                                is_text ? "the label and a sentence" : "both sentences"));
  }
}

void SentenceFile::read_table(std::string_view text, SentenceLabels& labels) {
  CsvRecords first(path_, text, columns_.delimiter);
  find_columns(first);
  CsvRecords records(path_, text, columns_.delimiter);
  std::vector<CsvField> fields;
  if (columns_.has_header) records.next(fields);
  while (records.next(fields)) {
    if (fields.size() != width_) {
      records.fail(fields.front(),
                   fmt::format("expected {}, found {}",
                               plural(static_cast<int64_t>(width_), "field"), fields.size()));
    }
    const int64_t line = fields[has_labels_ ? label_at_ : text_at_.front()].line;
    const auto label_in = [&](const CsvField& field) {
      return labels.read(unescaped(field), field.is_quoted ? LabelText::Quoted : kind_of_label(),
                         place_of_line(line));
    };
    const auto part_at = [&](size_t column) { return part(text, fields[column].text, line); };
    rows_.push_back({.first = part_at(text_at_.front()),
                     .second = has_pairs() ? part_at(text_at_[1]) : Part{},
                     .label = has_labels_ ? label_in(fields[label_at_]) : 0,
                     .line = static_cast<uint32_t>(line)});
  }
}

void SentenceFile::require_classes(const std::vector<std::string>& known) const {
  if (class_names_ == known) return;
  throw DataError(fmt::format("{}: expected an integer label, as in the training data, found '{}'",
                              place(0),
                              printable(class_names_[static_cast<size_t>(label(0))], 40)));
}

int64_t SentenceFile::largest_label() const {
  return std::ranges::max(rows_, {}, &Row::label).label;
}

std::string SentenceFile::text_of(const Part& part) const {
  const CsvField field{
      .text = text_.substr(part.begin, part.size),
      .is_quoted = !columns_.texts.empty() && part.begin > 0 && text_[part.begin - 1] == '"'};
  return unescaped(field);
}

std::vector<std::string> SentenceFile::texts(int64_t index) const {
  std::vector<std::string> texts = {text_of(row(index).first)};
  if (has_pairs()) texts.push_back(text_of(row(index).second));
  return texts;
}

}  // namespace lacuna
