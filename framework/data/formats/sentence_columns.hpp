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

/// Where sentences and labels stand in a file.
struct SentenceColumns {
  /// Columns of a CSV file, one of them or two; without any, each line is a label, a space or tab,
  /// and a sentence.
  std::vector<std::string> texts = {};
  std::string label = {};
  char delimiter = ',';
  int64_t num_labels = 0;       ///< labels are integers from 0, below it, or as many names
  bool label_may_lack = false;  ///< of a CSV file: then all labels are 0
  std::vector<std::string> class_names = {};  ///< what labels are; none: names may be found
};

/// Reads `text_column` (a name, or two), `label_column` and `delimiter`. *Errors:* ConfigError
/// where one of the first two is without the other, where a column is to be two things, and on a
/// delimiter that is none.
SentenceColumns read_sentence_columns(const Config& data, int64_t num_labels);

/// The next record as names.
std::vector<std::string> column_names(CsvRecords& records);
std::optional<size_t> find_column(const std::vector<std::string>& columns, const std::string& name);

/// Whether the first record of a text names all columns of sentences, so that it is such a table.
bool is_sentence_table(std::string_view text, const SentenceColumns& columns);

}  // namespace lacuna
