#include "lacuna/framework/data/types/csv_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/csv_fields.hpp"

namespace lacuna {
namespace {

// As codes they are floats for a while.
constexpr size_t kMostCategories = size_t{1} << 16;

std::string quoted_list(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text = join(std::span(names).first(std::min(names.size(), kMost)), ", ");
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

// The name of a class or category; empty where there is none.
std::string name_in(const CsvField& field) { return std::string(trimmed_field(unescaped(field))); }

// Between quotes, a word such as NA is a name.
bool is_missing_name(const CsvField& field, const CsvOptions& options) {
  const bool may_be_word = options.has_missing_names && !field.is_quoted;
  return may_be_word ? is_missing_field(field.text) : trimmed_field(field.text).empty();
}

// What may be done where a name is wanted, and the field may be meant as one.
std::string quotes_for(const CsvField& field) {
  const std::string_view word = trimmed_field(field.text);
  if (word.empty()) return "";
  return fmt::format("; as a name, it stands between quotes: \"{}\"", printable(word, 40));
}

}  // namespace

void TableBuilder::set_roles(CsvRoles roles) {
  roles_ = std::move(roles);
  num_inputs_ = std::ranges::count_if(roles_.input_of, [](int64_t input) { return input >= 0; });
  for (size_t i = 0; i < roles_.categories.size(); ++i) {
    if (roles_.categories[i] == nullptr) continue;
    Categories& categories = categories_[i];
    categories.names = *roles_.categories[i];
    categories.are_known = !categories.names.empty();
    for (size_t j = 0; j < categories.names.size(); ++j) {
      categories.code_of.emplace(categories.names[j], static_cast<int64_t>(j));
    }
  }
  if (!options_.class_names.empty()) {
    labels_are_names_ = true;
    found_names_ = options_.class_names;
    for (size_t i = 0; i < found_names_.size(); ++i) {
      label_of_name_[found_names_[i]] = static_cast<int64_t>(i);
    }
  }
}

void TableBuilder::add(const std::vector<CsvField>& fields) {
  const size_t width = roles_.columns.size();
  if (fields.size() != width) {
    const std::string expected = plural(static_cast<int64_t>(width), "field");
    if (fields.size() == 1 && trimmed_field(fields.front().text).empty()) {
      records_.fail(fields.front(), "the line is empty; expected " + expected);
    }
    records_.fail(fields.front(), fmt::format("expected {}, found {}", expected, fields.size()));
  }
  const size_t begin = inputs_.size();
  inputs_.resize(begin + static_cast<size_t>(num_inputs_));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (roles_.input_of[i] >= 0) {
      inputs_[begin + static_cast<size_t>(roles_.input_of[i])] =
          static_cast<float>(input(fields[i], i, fields));
    } else if (static_cast<int64_t>(i) == roles_.label && options_.task == Task::Classification) {
      table_.examples.labels.push_back(label(fields[i], i));
    } else if (static_cast<int64_t>(i) == roles_.label) {
      table_.examples.targets.push_back(static_cast<float>(number(fields[i], i, fields)));
    }
  }
}

double TableBuilder::input(const CsvField& field, size_t column,
                           const std::vector<CsvField>& record) {
  if (categories_.contains(column)) return category(field, column);
  const bool is_missing = is_missing_field(field.text);
  if (is_missing && options_.missing == CsvMissing::Kept) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::string* format = roles_.dates[column];
  if (format == nullptr) return number(field, column, record);
  if (const std::optional<double> days = parse_date(field.text, *format)) return *days;
  const std::string expected = format->empty() ? "a date such as 2024-03-01 or 2024-03-01T12:30:00"
                                               : "a date in the format " + *format;
  fail(field, column, expected,
       is_missing ? "; a value that is missing is filled in by data.missing"
       : format->empty()
           ? "; dates in another form need a format (data.dates: {NAME: \"%d/%m/%Y\"})"
           : "");
}

// Its code, or −1 where it is none.
double TableBuilder::category(const CsvField& field, size_t column) {
  Categories& categories = categories_.at(column);
  const std::string name = name_in(field);
  const bool is_missing = is_missing_name(field, options_);
  const auto known = categories.code_of.find(name);
  if (known != categories.code_of.end() && (categories.are_known || !is_missing)) {
    ++categories.count;
    return static_cast<double>(known->second);
  }
  if (!categories.are_known && options_.has_missing_names && is_missing_field(name)) {
    require_one_form(field, column, name);
  }
  if (is_missing) return missing_category(field, column);
  if (!is_utf8(name) || name.find('\0') != std::string::npos) {
    fail(field, column, "the name of a category, which is text in UTF-8");
  }
  if (categories.are_known) {
    ++categories.unknown[name];
    return -1.0;
  }
  const size_t code = categories.names.size();
  if (code >= kMostCategories) {
    fail(field, column, fmt::format("at most {} categories", kMostCategories));
  }
  ++categories.count;
  categories.names.push_back(name);
  categories.code_of.emplace(name, static_cast<int64_t>(code));
  return static_cast<double>(code);
}

double TableBuilder::missing_category(const CsvField& field, size_t column) const {
  if (options_.missing == CsvMissing::Kept) return -1.0;
  fail(field, column, "the name of a category",
       "; a value that is missing is filled in by data.missing" + quotes_for(field));
}

// As a known category, a word is one with quotes and without: so both cannot be in training.
void TableBuilder::require_one_form(const CsvField& field, size_t column, const std::string& name) {
  const auto [word, is_new] = categories_.at(column).words.emplace(name, field.is_quoted);
  if (is_new || word->second == field.is_quoted || name.empty()) return;
  fail(field, column,
       "the word between quotes in all rows (a category), or in none (a missing value)");
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

// Fills in the features of a column that its codes represent.
void TableBuilder::name_categories(const std::string& path, size_t column,
                                   std::vector<int64_t>& feature_of) {
  Categories& categories = categories_.at(column);
  const std::string& name = roles_.columns[column];
  const auto rows = static_cast<int64_t>(inputs_.size()) / num_inputs_;
  std::vector<std::string> sorted = categories.names;
  if (!categories.are_known) std::ranges::sort(sorted);
  constexpr int64_t kFew = 20;
  if (!categories.are_known && rows >= kFew && static_cast<int64_t>(sorted.size()) == rows) {
    throw DataError(fmt::format(
        "{}: column '{}': each of the {} rows has a category of its own, as '{}'; leave the column "
        "out (data.drop_columns)",
        path, name, rows, printable(categories.names.front(), 40)));
  }
  if (sorted.empty()) {
    throw DataError(fmt::format("{}: column '{}': it has no category in any row", path, name));
  }
  if (!categories.unknown.empty()) {
    const auto& [first, times] = *categories.unknown.begin();
    if (categories.count == 0) {
      throw DataError(
          fmt::format("{}: column '{}': none of its values is a category of the training data "
                      "({}), as '{}'",
                      path, name, quoted_list(sorted), printable(first, 40)));
    }
    std::vector<std::string> found;
    for (const auto& [text, count] : categories.unknown) {
      found.push_back(fmt::format("'{}' ({})", printable(text, 40), count));
    }
    table_.unknown.push_back("column '" + name + "': " + quoted_list(found));
  }
  for (const std::string& each : categories.names) {
    feature_of.push_back(std::ranges::lower_bound(sorted, each) - sorted.begin());
  }
  if (categories.are_known) {
    for (size_t i = 0; i < feature_of.size(); ++i) feature_of[i] = static_cast<int64_t>(i);
  }
  table_.categories[name] = std::move(sorted);
}

// Each code becomes as many features as its column has categories.
void TableBuilder::expand_categories(const std::string& path) {
  if (categories_.empty()) return;
  const auto width = static_cast<size_t>(num_inputs_);
  std::vector<std::vector<int64_t>> feature_of(width);  // none of an input that is a number
  std::vector<size_t> first(width);
  for (const auto& [column, unused] : categories_) {
    name_categories(path, column, feature_of[static_cast<size_t>(roles_.input_of[column])]);
  }
  size_t features = 0;
  for (size_t i = 0; i < width; ++i) {
    first[i] = features;
    features += std::max<size_t>(1, feature_of[i].size());
  }
  const size_t rows = inputs_.size() / width;
  if (static_cast<double>(rows) * static_cast<double>(features) * sizeof(float) >
      static_cast<double>(available_memory())) {
    throw DataError(
        fmt::format("{}: {} rows of {} features do not fit in memory: a column has too "
                    "many categories (data.drop_columns leaves it out)",
                    path, rows, features));
  }
  std::vector<float> expanded(rows * features, 0.0f);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < width; ++i) {
      const float value = inputs_[row * width + i];
      float* into = expanded.data() + row * features + first[i];
      if (feature_of[i].empty()) {
        *into = value;
      } else if (value >= 0.0f) {
        into[feature_of[i][static_cast<size_t>(value)]] = 1.0f;
      }
    }
  }
  inputs_ = std::move(expanded);
  num_inputs_ = static_cast<int64_t>(features);
}

CsvTable TableBuilder::finish(const std::string& path) {
  Examples& examples = table_.examples;
  expand_categories(path);
  examples.example_shape = Shape{num_inputs_};
  inputs_.shrink_to_fit();
  examples.inputs = std::move(inputs_);
  table_.columns = std::move(roles_.columns);
  table_.label = roles_.label;
  if (roles_.label < 0) return std::move(table_);
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

// What may be done where a number is wanted, and `record` has something else in this column.
std::string TableBuilder::remedy_for(size_t column, const std::vector<CsvField>& record) const {
  const CsvField& field = record[column];
  const bool is_input = roles_.input_of[column] >= 0;
  if (is_missing_field(field.text)) {
    return is_input ? "; a value that is missing is filled in by data.missing: mean or median"
                    : "; a value that is missing must be filled in, or its line left out";
  }
  const bool is_first = inputs_.size() <= static_cast<size_t>(num_inputs_);
  if (options_.header == CsvHeader::Absent && is_first) {
    return "; a table with `header: false` has no line of names: remove it, or, in training, set "
           "header: true";
  }
  const char begin = trimmed_field(field.text).front();
  const bool is_word = std::string_view("+-.0123456789").find(begin) == std::string_view::npos;
  if (!is_input || (!is_word && !parse_date(field.text))) return "";
  std::vector<std::string> texts, dates;  // all columns that are in the same case
  for (size_t i = 0; i < record.size(); ++i) {
    const bool is_text = roles_.input_of[i] >= 0 && !categories_.contains(i) &&
                         roles_.dates[i] == nullptr && !is_missing_field(record[i].text) &&
                         !parse_field(record[i].text);
    if (!is_text) continue;
    (parse_date(record[i].text) ? dates : texts).push_back(printable(roles_.columns[i], 40));
  }
  std::string ways;
  if (!texts.empty()) ways += "data.categories: [" + quoted_list(texts) + "] takes names, ";
  if (!dates.empty()) ways += "data.dates: [" + quoted_list(dates) + "] takes dates, ";
  return "; inputs are numbers: " + ways + "data.drop_columns leaves columns out";
}

double TableBuilder::number(const CsvField& field, size_t column,
                            const std::vector<CsvField>& record) const {
  const std::optional<double> value = parse_field(field.text);
  if (!value) fail(field, column, "a number", remedy_for(column, record));
  if (!std::isfinite(*value)) {
    const bool is_missing = is_missing_field(field.text) && roles_.input_of[column] >= 0;
    fail(field, column, "a finite number that float32 can hold",
         is_missing ? remedy_for(column, record) : "");
  }
  return *value;
}

int64_t TableBuilder::label(const CsvField& field, size_t column) {
  const std::optional<double> value = parse_field(field.text);
  if (!labels_are_names_) {
    const bool is_word = !value || (field.is_quoted && std::isnan(*value));
    labels_are_names_ = is_word && options_.num_classes == 0;
  }
  if (*labels_are_names_) return named_label(field, column);
  const int64_t bound = options_.num_classes > 0 ? options_.num_classes : kMaxClasses;
  if (!value || *value != std::floor(*value) || *value < 0 ||
      *value >= static_cast<double>(bound)) {
    // What is a number and no label may be meant as one if no key gives the classes.
    const bool may_be_target = value && std::isfinite(*value) && options_.num_classes == 0;
    fail(field, column, fmt::format("a label, which is an integer from 0 to {}", bound - 1),
         may_be_target ? "; if the targets are numbers, not classes, set data.task: regression"
                       : "");
  }
  return static_cast<int64_t>(*value);
}

int64_t TableBuilder::named_label(const CsvField& field, size_t column) {
  const std::string name = name_in(field);
  const bool is_missing = is_missing_name(field, options_);
  const auto known = label_of_name_.find(name);
  if (known != label_of_name_.end() && (!options_.class_names.empty() || !is_missing)) {
    return known->second;
  }
  if (is_missing) {
    fail(field, column, "the name of a class",
         "; a label that is missing must be filled in, or its line left out" + quotes_for(field));
  }
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
  const std::string& name = roles_.columns[column];
  records_.fail(field, "field '" + (is_utf8(name) ? name : printable(name)) + "': expected " +
                           expected + ", found '" + printable(field.text, 40) + "'" + remedy);
}

}  // namespace lacuna
