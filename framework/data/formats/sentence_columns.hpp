// Which columns of a table are sentences, and which one is their label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/formats/csv_records.hpp"

namespace lacuna {

/// The columns of sentences and labels in a file.
struct SentenceColumns {
  /// Columns of a CSV file, one of them or two; without any, each line is a label, a space or tab,
  /// and a sentence. Without a header these are numbers from 0, negative ones from the end.
  std::vector<std::string> texts = {};
  std::string label = {};
  bool has_header = true;  ///< whether the first line of a CSV file names the columns
  char delimiter = ',';
  int64_t num_labels = 0;          ///< labels are integers from 0, below it, or as many names
  bool label_may_lack = false;     ///< of a CSV file: then all labels are 0
  bool has_missing_labels = true;  ///< whether a word such as NA is a missing label, not a name
  std::vector<std::string> class_names = {};  ///< what labels are; none: names may be found
  /// What may stand in a file for each of these names, other than the name itself; or none.
  std::vector<std::string> label_texts = {};
};

/// Reads `text_column` (a name, or two), `label_column`, `header`, `delimiter` and `class_names`.
/// *Errors:* ConfigError where one of the first two is without the other, where a column is to be
/// two things, on a name where there is no header, on a delimiter that is none, and on names of
/// classes that cannot be distinguished.
SentenceColumns read_sentence_columns(const Config& data, int64_t num_labels);

/// The next record as names.
std::vector<std::string> column_names(CsvRecords& records);
std::optional<size_t> find_column(const std::vector<std::string>& columns, const std::string& name);

/// The place of a column that is given by its number, among so many. *Errors:* DataError with the
/// file's path when there is none.
size_t column_at(const std::string& path, const std::string& number, size_t columns);

/// Whether the first record of a text names all columns of sentences, so that it is such a table.
bool is_sentence_table(std::string_view text, const SentenceColumns& columns);

}  // namespace lacuna
