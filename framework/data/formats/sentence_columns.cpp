#include "lacuna/framework/data/formats/sentence_columns.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"

namespace lacuna {

SentenceColumns read_sentence_columns(const Config& data, int64_t num_labels) {
  SentenceColumns columns{.num_labels = num_labels};
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
    data.get("delimiter").fail("one character that is no quote and no end of a line");
  }
  columns.delimiter = delimiter.front();
  return columns;
}

std::vector<std::string> column_names(CsvRecords& records) {
  std::vector<CsvField> fields;
  std::vector<std::string> names;
  if (records.next(fields)) {
    for (const CsvField& field : fields) names.push_back(unescape_csv(field.text));
  }
  return names;
}

std::optional<size_t> find_column(const std::vector<std::string>& columns,
                                  const std::string& name) {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

bool is_sentence_table(std::string_view text, const SentenceColumns& columns) {
  if (columns.texts.empty()) return false;
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
