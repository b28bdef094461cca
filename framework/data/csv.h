// The `csv` dataset: tables of numbers in text, one example per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

enum class CsvHeader {
  Present,  ///< the first line names the columns
  Absent,   ///< the first line is an example; columns are named "0", "1", …
};

struct CsvOptions {
  char delimiter = ',';
  CsvHeader header = CsvHeader::Present;
  /// Column of the label or target: a name, or an index from 0 (negative: from the end, −1 the
  /// last). Not looked at for Task::None, where every column is an input.
  std::variant<int64_t, std::string> label_column = int64_t{-1};
  Task task = Task::Classification;
  /// Classification: labels lie in [0, num_classes). 0: one more than the largest label found.
  int64_t num_classes = 0;
};

struct CsvTable {
  std::vector<std::string> columns;  ///< names of all columns, the label's included
  Examples examples;                 ///< float inputs of shape [columns without the label]
};

/// Reads a table (RFC 4180: fields may be quoted; lines end in LF or CRLF; blank lines at the end
/// and a UTF-8 byte order mark are skipped; a name that ends in .gz is unpacked). Numbers are read
/// in the C locale, spaces around them are skipped.
/// *Errors:* DataError "file:line:column: field 'name': …" on a field that is not a finite number
/// or not a valid label, a line with another number of fields, a quote that is not closed;
/// DataError with the file when it cannot be read, has no examples, no input column, or not the
/// label column (with the nearest name).
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options);

/// Keys of `data` (besides those of load_data):
///
/// - `train` (required), `test` (default: no test split): paths of the files.
/// - `header`: true | false, whether the first line names the columns. Default true.
/// - `delimiter`: one character between fields. Default ",".
/// - `label_column`: name, or index from 0 (negative: from the end). Default −1, the last column.
/// - `task`, `num_classes`: see read_task.
///
/// Inputs are floats, [features]. *Errors:* as read_csv; DataError when the columns of the test
/// file are not those of the training file; ConfigError on values out of range.
DataSplits load_csv(const Config& data, uint64_t seed);

}  // namespace lacuna
