#include "lacuna/framework/data/formats/sentence_labels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/formats/csv_fields.hpp"

namespace lacuna {
namespace {

// Tables have 1.0 where a column once had gaps.
std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || stop != text.data() + text.size() || error != std::errc()) {
    return std::nullopt;
  }
  return value;
}

// Whether the first label of a file makes all of them names.
bool begins_names(std::string_view label, LabelText kind) {
  if (kind == LabelText::Name) return true;
  if (kind == LabelText::Integer || label.empty()) return false;
  const std::optional<double> value = number_in(label);
  return !value || (kind == LabelText::Quoted && std::isnan(*value));
}

bool is_missing_label(std::string_view label, LabelText kind) {
  const bool may_be = kind == LabelText::Integer || kind == LabelText::IntegerOrName;
  return may_be && is_missing_field(label);
}

}  // namespace

SentenceLabels::SentenceLabels(int64_t num_labels, const std::vector<std::string>& known,
                               const std::vector<std::string>& label_texts)
    : num_labels_(num_labels),
      are_known_(!known.empty()),
      have_texts_(!label_texts.empty()),
      names_(known) {
  if (are_known_) are_names_ = true;
  for (size_t i = 0; i < names_.size(); ++i) label_of_[names_[i]] = static_cast<int32_t>(i);
  for (size_t i = 0; i < label_texts.size(); ++i)
    label_of_[label_texts[i]] = static_cast<int32_t>(i);
}

int32_t SentenceLabels::read(std::string_view text, LabelText kind, const std::string& place) {
  const std::string_view label = trimmed_field(text);
  if (!are_names_) are_names_ = begins_names(label, kind);
  return *are_names_ ? name(label, kind, place) : number(label, kind, place);
}

int32_t SentenceLabels::number(std::string_view text, LabelText kind,
                               const std::string& place) const {
  const std::optional<double> value = number_in(text);
  if (value && *value >= 0.0 && *value < static_cast<double>(num_labels_) &&
      *value == std::floor(*value)) {
    return static_cast<int32_t>(*value);
  }
  const bool is_word = !value && !text.empty() && kind == LabelText::Integer;
  throw DataError(fmt::format("{}: expected a label, an integer from 0 to {}, found '{}'{}", place,
                              num_labels_ - 1, printable(text, 40),
                              is_word ? "; the name of a class needs a tab after it, or a CSV file "
                                        "with data.text_column and data.label_column"
                                      : ""));
}

int32_t SentenceLabels::name(std::string_view text, LabelText kind, const std::string& place) {
  auto known = label_of_.find(text);
  const std::optional<double> value = have_texts_ ? number_in(text) : std::nullopt;
  if (known == label_of_.end() && value && *value == std::floor(*value)) {  // 1.0 is 1
    known = label_of_.find(fmt::format("{:.0f}", *value));
  }
  const bool is_missing = is_missing_label(text, kind);
  if (known != label_of_.end() && (are_known_ || !is_missing)) return known->second;
  const auto fail = [&](const std::string& expected, const std::string& remedy = "") {
    throw DataError(
        fmt::format("{}: expected {}, found '{}'{}", place, expected, printable(text, 40), remedy));
  };
  if (is_missing && !text.empty()) {
    fail("the name of a class",
         "; a label that is missing must be filled in, or its line left out; a class of this name "
         "needs quotes (in tables) or data.class_names");
  }
  if (text.empty() || !is_utf8(text) || text.find('\0') != std::string_view::npos) {
    fail("the name of a class, which is text in UTF-8");
  }
  if (are_known_) {
    constexpr size_t kMost = 1000;
    fail("one of the classes of the training data (" +
         suggest_name(std::string(text), std::span(names_).first(std::min(names_.size(), kMost))) +
         ")");
  }
  const auto label = static_cast<int32_t>(names_.size());
  if (label >= num_labels_) fail(fmt::format("at most {} classes", num_labels_));
  names_.emplace_back(text);
  label_of_.emplace(names_.back(), label);
  return label;
}

std::vector<int32_t> SentenceLabels::sort_names() {
  if (are_known_ || names_.empty()) return {};
  std::vector<int32_t> label_of(names_.size());
  int32_t next = 0;
  for (auto& [name, label] : label_of_) {  // in the order of the names
    names_[static_cast<size_t>(next)] = name;
    label_of[static_cast<size_t>(label)] = next;
    label = next++;
  }
  return label_of;
}

}  // namespace lacuna
