#include "lacuna/framework/data/types/csv_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {

std::string_view trimmed_field(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<double> parse_field(std::string_view text) {
  std::string_view digits = trimmed_field(text);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return std::abs(value) > std::numeric_limits<float>::max()
             ? std::numeric_limits<double>::infinity()
             : value;
}

void TableBuilder::set_columns(std::vector<std::string> columns, std::vector<int64_t> input_of,
                               int64_t label) {
  table_.columns = std::move(columns);
  input_of_ = std::move(input_of);
  num_inputs_ = std::ranges::count_if(input_of_, [](int64_t input) { return input >= 0; });
  label_ = label;
  if (!options_.class_names.empty()) {
    labels_are_names_ = true;
    found_names_ = options_.class_names;
    for (size_t i = 0; i < found_names_.size(); ++i) {
      label_of_name_[found_names_[i]] = static_cast<int64_t>(i);
    }
  }
}

void TableBuilder::add(const std::vector<CsvField>& fields) {
  if (fields.size() != table_.columns.size()) {
    if (fields.size() == 1 && trimmed_field(fields.front().text).empty()) {
      records_.fail(fields.front(),
                    fmt::format("the line is empty; expected {} fields", table_.columns.size()));
    }
    records_.fail(fields.front(), fmt::format("expected {} fields, found {}", table_.columns.size(),
                                              fields.size()));
  }
  const size_t begin = inputs_.size();
  inputs_.resize(begin + static_cast<size_t>(num_inputs_));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (input_of_[i] >= 0) {
      inputs_[begin + static_cast<size_t>(input_of_[i])] = static_cast<float>(number(fields[i], i));
    } else if (static_cast<int64_t>(i) == label_ && options_.task == Task::Classification) {
      table_.examples.labels.push_back(label(fields[i], i));
    } else if (static_cast<int64_t>(i) == label_) {
      table_.examples.targets.push_back(static_cast<float>(number(fields[i], i)));
    }
  }
}

// Of names that were found here, labels are numbered in the order of the names.
void TableBuilder::number_names() {
  if (!labels_are_names_.value_or(false)) return;
  Examples& examples = table_.examples;
  examples.class_names = found_names_;
  if (!options_.class_names.empty()) return;
  std::ranges::sort(examples.class_names);
  std::vector<int64_t> label_of;  // of a name by when it came
  for (const std::string& name : found_names_) {
    label_of.push_back(std::ranges::lower_bound(examples.class_names, name) -
                       examples.class_names.begin());
  }
  for (int64_t& label : examples.labels) label = label_of[static_cast<size_t>(label)];
}

CsvTable TableBuilder::finish() {
  Examples& examples = table_.examples;
  examples.example_shape = Shape{num_inputs_};
  inputs_.shrink_to_fit();
  examples.inputs = std::move(inputs_);
  if (label_ < 0) return std::move(table_);
  if (options_.task == Task::Classification) {
    number_names();
    examples.num_classes = options_.num_classes > 0
                               ? options_.num_classes
                               : *std::ranges::max_element(examples.labels) + 1;
  } else if (options_.task == Task::Regression) {
    examples.num_outputs = 1;
  }
  return std::move(table_);
}

// What may be done where a number is wanted.
std::string TableBuilder::remedy_for(const CsvField& field, size_t column) const {
  if (trimmed_field(field.text).empty()) {
    return "; a value that is missing must be filled in, or its line left out";
  }
  const bool is_first = inputs_.size() <= static_cast<size_t>(num_inputs_);
  if (options_.header == CsvHeader::Absent && is_first) {
    return "; a table of `header: false` has no line of names: leave it out, or, in training, say "
           "header: true";
  }
  const char begin = trimmed_field(field.text).front();
  const bool is_word = std::string_view("+-.0123456789").find(begin) == std::string_view::npos;
  return !is_word || input_of_[column] < 0
             ? ""
             : "; inputs are numbers: write names as such (as a column of 0 and 1 for each of "
               "them), or leave the column out";
}

double TableBuilder::number(const CsvField& field, size_t column) const {
  const std::optional<double> value = parse_field(field.text);
  if (!value) fail(field, column, "a number", remedy_for(field, column));
  if (!std::isfinite(*value)) fail(field, column, "a finite number that float32 can hold");
  return *value;
}

int64_t TableBuilder::label(const CsvField& field, size_t column) {
  const std::optional<double> value = parse_field(field.text);
  if (!labels_are_names_) labels_are_names_ = !value && options_.num_classes == 0;
  if (*labels_are_names_) return named_label(field, column);
  const int64_t bound = options_.num_classes > 0 ? options_.num_classes : kMaxClasses;
  if (!value || *value != std::floor(*value) || *value < 0 ||
      *value >= static_cast<double>(bound)) {
    // What is a number and no label may be meant as one, where nothing says what classes there are.
    const bool may_be_target = value && std::isfinite(*value) && options_.num_classes == 0;
    fail(field, column, fmt::format("a label, which is an integer from 0 to {}", bound - 1),
         may_be_target ? "; where the answers are numbers and no classes, give data `task: "
                         "regression`"
                       : "");
  }
  return static_cast<int64_t>(*value);
}

int64_t TableBuilder::named_label(const CsvField& field, size_t column) {
  const std::string name = unescape_csv(trimmed_field(field.text));
  const auto known = label_of_name_.find(name);
  if (known != label_of_name_.end()) return known->second;
  if (name.empty()) fail(field, column, "the name of a class");
  if (!is_utf8(name) || name.find('\0') != std::string::npos) {
    fail(field, column, "the name of a class, which is text in UTF-8");
  }
  if (!options_.class_names.empty()) {
    fail(field, column,
         "one of the classes of the training data (" +
             suggest_name(
                 name, std::span(found_names_).first(std::min<size_t>(found_names_.size(), 1000))) +
             ")");
  }
  const auto label = static_cast<int64_t>(found_names_.size());
  if (label >= kMaxClasses) fail(field, column, fmt::format("at most {} classes", kMaxClasses));
  found_names_.push_back(name);
  label_of_name_.emplace(name, label);
  return label;
}

void TableBuilder::fail(const CsvField& field, size_t column, const std::string& expected,
                        const std::string& remedy) const {
  const std::string& name = table_.columns[column];
  records_.fail(field, "field '" + (is_utf8(name) ? name : printable(name)) + "': expected " +
                           expected + ", found '" + printable(field.text, 40) + "'" + remedy);
}

}  // namespace lacuna
