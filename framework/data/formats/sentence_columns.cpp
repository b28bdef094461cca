#include "lacuna/framework/data/formats/sentence_columns.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Of a list, labels are the names or their numbers from 0; of a map, the names or their keys.
void read_class_names(const Config& data, SentenceColumns& columns) {
  const Config names = data.get("class_names");
  if (names.is_null()) return;
  if (names.is_map()) {
    for (const auto& [label, name] : names.entries()) {
      columns.label_texts.push_back(label);
      columns.class_names.push_back(name.as<std::string>());
    }
  } else {
    columns.class_names = names.as<std::vector<std::string>>();
    for (size_t i = 0; i < columns.class_names.size(); ++i) {
      columns.label_texts.push_back(std::to_string(i));
    }
  }
  if (columns.class_names.size() < 2) names.error("classification needs two classes or more");
  std::map<std::string_view, size_t> label_of;
  for (const auto* texts : {&columns.class_names, &columns.label_texts}) {
    for (size_t i = 0; i < texts->size(); ++i) {
      const auto [before, is_new] = label_of.emplace((*texts)[i], i);
      if (is_new || (texts == &columns.label_texts && before->second == i)) continue;
      names.error(fmt::format("'{}' names two classes", (*texts)[i]));
    }
  }
}

void require_numbers(const Config& text, const Config& label) {
  const auto require = [](const Config& column) {
    if (column.is_number()) {
      column.as<int64_t>();
    } else {
      column.fail("the number of a column from 0, since there is no header that names the columns");
    }
  };
  for (const Config& column : text.is_list() ? text.items() : std::vector<Config>{text}) {
    require(column);
  }
  require(label);
}

}  // namespace

SentenceColumns read_sentence_columns(const Config& data, int64_t num_labels) {
  SentenceColumns columns{.num_labels = num_labels};
  read_class_names(data, columns);
  const Config text = data.get("text_column");
  const auto label = data.optional<std::string>("label_column");
  if (text.is_null() == label.has_value()) {
    data.get(label ? "label_column" : "text_column")
        .error("text_column and label_column go together: each names a column of a CSV file");
  }
  if (text.is_null()) return columns;
  columns.texts = text.is_list() ? text.as<std::vector<std::string>>()
                                 : std::vector<std::string>{text.as<std::string>()};
  if (columns.texts.empty() || columns.texts.size() > 2) {
    text.fail("the name of a column, or a list of two");
  }
  columns.label = *label;
  columns.has_header = data.get<bool>("header", true);
  if (!columns.has_header) require_numbers(text, data.get("label_column"));
  if (columns.texts.front() == columns.texts.back() && columns.texts.size() > 1) {
    text.error(fmt::format("both sentences are the column '{}'; name two", columns.texts.front()));
  }
  if (std::ranges::find(columns.texts, columns.label) != columns.texts.end()) {
    data.get("label_column")
        .error(fmt::format("'{}' is the column of the {} (text_column); name another one",
                           columns.label, columns.texts.size() > 1 ? "sentences" : "sentence"));
  }
  const auto delimiter = data.get<std::string>("delimiter", ",");
  if (delimiter.size() != 1 || delimiter.find_first_of("\"\r\n") != std::string::npos) {
    data.get("delimiter").fail("one character other than a quote or the end of a line");
  }
  columns.delimiter = delimiter.front();
  return columns;
}

std::vector<std::string> column_names(CsvRecords& records) {
  std::vector<CsvField> fields;
  std::vector<std::string> names;
  if (records.next(fields)) {
    for (const CsvField& field : fields) names.push_back(unescaped(field));
  }
  return names;
}

std::optional<size_t> find_column(const std::vector<std::string>& columns,
                                  const std::string& name) {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

size_t column_at(const std::string& path, const std::string& number, size_t columns) {
  int64_t index = 0;
  std::from_chars(number.data(), number.data() + number.size(), index);
  const auto count = static_cast<int64_t>(columns);
  if (index < -count || index >= count) {
    throw DataError(
        fmt::format("{}: no column {}; the first line has {} columns", path, number, count));
  }
  return static_cast<size_t>(index < 0 ? index + count : index);
}

bool is_sentence_table(std::string_view text, const SentenceColumns& columns) {
  if (columns.texts.empty() || !columns.has_header) return false;
  try {
    CsvRecords records("", text, columns.delimiter);
    const std::vector<std::string> names = column_names(records);
    return std::ranges::all_of(columns.texts, [&](const std::string& column) {
      return find_column(names, column).has_value();
    });
  } catch (const DataError&) {
    return false;  // quotes as sentences have them, and tables do not
  }
}

}  // namespace lacuna
