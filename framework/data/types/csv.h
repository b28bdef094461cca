// The `csv` dataset: tables of numbers in text, one example per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

enum class CsvHeader {
  Present,  ///< the first line names the columns
  Absent,   ///< the first line is an example; columns are named "0", "1", …
  Guessed,  ///< it names the columns unless all its fields are numbers
};

/// Names of the categories that a column of text has, in the order of the features that they are.
using CsvCategories = std::map<std::string, std::vector<std::string>>;

/// The columns that a model was trained on, to be found by name.
struct CsvColumns {
  std::vector<std::string> inputs;  ///< in the order of the model's features
  std::string label;                ///< of the label or target
  CsvCategories categories = {};    ///< of the inputs that are text
};

/// What becomes of an input that is_missing_field.
enum class CsvMissing {
  Refused,  ///< it is an error
  Kept,     ///< it is NaN, to be filled in
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
  /// Classification: names of the classes, where labels are names. Empty: labels are names where
  /// the first one is no number and num_classes is 0; classes are then numbered by their names'
  /// order.
  std::vector<std::string> class_names = {};
  /// Inputs are the columns of these names, at any place; others are left out. The label is read
  /// where its column is there, and label_column is not looked at. None: by position.
  std::optional<CsvColumns> wanted = std::nullopt;
  /// Columns that are no inputs: names, or numbers from 0 (negative: from the end), as those below.
  std::vector<std::string> dropped = {};
  /// Inputs whose text is the name of a category. Each category is a feature, 1 where the input is
  /// of it and 0 elsewhere. Without names: those found, in their order; with names, another one is
  /// counted in CsvTable::unknown, and all its features are 0.
  CsvCategories categories = {};
  /// Inputs that are dates, each with its format or "", as parse_date has it.
  std::map<std::string, std::string> dates = {};
  CsvMissing missing = CsvMissing::Refused;
  /// Of a table without a header: the columns that the training data had, or 0. The table may then
  /// have all of these, or the inputs alone in their order.
  int64_t trained_columns = 0;
  /// Is given the columns' names and the label's place before any example is read, and throws where
  /// they are not what is expected. None: any are good.
  std::function<void(const std::vector<std::string>& columns, int64_t label)> check_columns = {};
};

struct CsvTable {
  std::vector<std::string> columns;         ///< names of all columns, the label's included
  Examples examples;                        ///< float inputs of shape [features]
  int64_t label = -1;                       ///< the label's column, or −1
  std::vector<std::string> extra = {};      ///< with `wanted`: columns that are left out,
  std::vector<std::string> reordered = {};  ///< and those that come before one they should follow
  CsvCategories categories = {};  ///< of each column whose options name it, by the column's name
  std::vector<std::string> unknown = {};  ///< for each column with unknown categories: which
};

/// Reads a table (RFC 4180: fields may be quoted; lines end in LF or CRLF; blank lines at the end
/// and a UTF-8 byte order mark are skipped; a name that ends in .gz is unpacked). Numbers are read
/// in the C locale, spaces around them are skipped.
/// *Errors:* DataError "file:line:column: field 'name': …" on a field that is not a finite number
/// or not a valid label, a line with another number of fields, a quote that is not closed;
/// DataError with the file when it cannot be read, has no examples, no input column, or not the
/// label column (with the nearest name), when two columns have one name, and when wanted columns
/// are missing. At most kMostCsvFields fields in a line. *Cost:* memory of the file's size and of
/// four bytes a number; a file that is larger than the memory that is left is refused unread.
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options);
/// The same of a text; `path` is for messages.
CsvTable read_csv_text(const std::string& path, std::string_view text, const CsvOptions& options);

/// Whether a path is a table's by its name; "-" is.
bool is_table_name(std::string_view path);

/// The inputs of a table, to predict from; "-" is the standard input. Warns of columns that are
/// left out, or are in another order than the wanted ones.
Examples read_csv_inputs(const std::string& path, const CsvOptions& options);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train` (required), `validation`, `test` (default: no such split): paths of the files. The
/// last
///   two may be numbers instead: then they hold out training examples, as in load_data.
/// - `header`: true | false, whether the first line names the columns. Default true.
/// - `delimiter`: one character between fields. Default ",".
/// - `label_column`: name, or index from 0 (negative: from the end). Default −1, the last column.
/// - `drop_columns`, `categories`, `dates`: as CsvOptions has them: lists of columns, or for
/// `dates`
///   a map from columns to formats. Default: none.
/// - `missing`: error | mean | median | a number, or a list with one for each feature: what inputs
///   that are missing become. Mean and median are those of the training examples that are not held
///   out. Default error.
/// - `task`, `num_classes`: see read_task. Labels that are text are names of classes, which are
///   numbered in the order of the names that the training file has.
///
/// Inputs are floats, [features]. *Errors:* as read_csv; DataError when the columns of another
/// file are not those of the training file; ConfigError on values out of range.
DataSplits load_csv(const Config& data, uint64_t seed);
DatasetType csv_dataset();

}  // namespace lacuna
