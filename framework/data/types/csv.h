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

/// How a missing input is handled: a field that is empty or, in any case, one of `NA`, `N/A`,
/// `#N/A`, `NaN`, `NaT`, `null`, `none`, `<NA>` and `?`.
enum class CsvMissing {
  Refused,  ///< it is an error
  Kept,     ///< it is NaN, to be filled in
};

struct CsvTable;

struct CsvOptions {
  char delimiter = ',';
  CsvHeader header = CsvHeader::Present;
  /// Column of the label or target: a name, or an index from 0 (negative: from the end, −1 the
  /// last). Ignored for Task::None, where every column is an input.
  std::variant<int64_t, std::string> label_column = int64_t{-1};
  Task task = Task::Classification;
  /// Classification: labels lie in [0, num_classes). 0: one more than the largest label found.
  int64_t num_classes = 0;
  /// Classification: names of the classes, where labels are names. Empty: labels are names if the
  /// first one is not a number and num_classes is 0; classes are then numbered in the order of
  /// their names. A label that is_missing_field is an error, unless it is between quotes or one of
  /// the names given here. The same holds for categories with names.
  std::vector<std::string> class_names = {};
  /// Inputs are the columns with these names, in any position; others are ignored. The label is
  /// read if its column exists, and label_column is ignored. None: by position.
  std::optional<CsvColumns> wanted = std::nullopt;
  /// Columns that are not inputs: names, or numbers as in label_column.
  std::vector<std::string> dropped = {};
  /// Inputs whose text is the name of a category. Each category is a feature: 1 if the input has
  /// it, else 0. Without names: the categories found, in order; with names, an unknown one is
  /// listed in CsvTable::unknown, and all its features are 0.
  CsvCategories categories = {};
  /// Inputs that are dates, as days since 1970 (UTC), each with its format: "" for ISO 8601
  /// (2024-03-01T12:30:05+01:00), else of %Y, %y, %m, %b, %B, %d, %H, %M and %S as in strptime(3).
  std::map<std::string, std::string> dates = {};
  CsvMissing missing = CsvMissing::Refused;
  /// Whether a word such as NA is a missing label or category. If not, it is a name, as it always
  /// is between quotes.
  bool has_missing_names = true;
  /// For a table without a header: the number of columns of the training data, or 0. The table may
  /// then have all of these, or only the inputs, in order.
  int64_t trained_columns = 0;
  /// Receives a table whose columns, inputs and label are known, before any example is read, and
  /// throws if they are not as expected. None: all are accepted.
  std::function<void(const CsvTable& found)> check_columns = {};
};

struct CsvTable {
  std::vector<std::string> columns;         ///< names of all columns, the label's included
  std::vector<std::string> inputs;          ///< of those that are inputs, in their order
  Examples examples;                        ///< float inputs of shape [features]
  int64_t label = -1;                       ///< the label's column, or −1
  std::vector<std::string> extra = {};      ///< with `wanted`: columns that are ignored,
  std::vector<std::string> reordered = {};  ///< and those that come before one they should follow
  CsvCategories categories = {};            ///< the categories found, by column
  std::vector<std::string> unknown = {};    ///< for each column with unknown categories: which
};

/// Reads a table (RFC 4180: fields may be quoted; lines end in LF or CRLF; blank lines at the end
/// and a UTF-8 byte order mark are skipped; a name that ends in .gz is unpacked). Numbers are read
/// in the C locale, spaces around them are skipped. *Errors:* DataError with file, line, column and
/// field on a field that is not a finite number or not a valid label, a line with another
/// number of fields, a quote that is not closed; DataError with the file when it cannot be read,
/// has no examples, no input column, or not the label column (with the nearest name), when two
/// columns have one name, and when wanted columns are missing. At most 2¹⁹ fields in a line.
/// *Cost:* memory for the file and four bytes per number; a file that is larger than the free
/// memory is refused before it is read.
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options);
/// The same for a text; `path` is for messages.
CsvTable read_csv_text(const std::string& path, std::string_view text, const CsvOptions& options);

/// Whether a path names a table; "-" does.
bool is_table_name(std::string_view path);

/// The inputs of a table, to predict from; "-" is the standard input. Warns about columns that are
/// ignored, or that are in another order than the wanted ones.
Examples read_csv_inputs(const std::string& path, const CsvOptions& options);

/// Keys of `data` (in addition to those of load_data):
///
/// - `train` (required), `validation`, `test` (default: no such split): paths of the files. The
///   last two may be numbers instead: then they hold out training examples, as in load_data.
/// - `header`: true | false, whether the first line names the columns. Default true.
/// - `delimiter`: one character between fields. Default ",".
/// - `label_column`: name, or index from 0 (negative: from the end). Default −1, the last column.
/// - `drop_columns`, `categories`, `dates`: as CsvOptions has them: lists of columns, or for
///   `dates` a map from columns to formats. Default: none. Where the training file names its
///   columns, the names are written in place of their numbers.
/// - `missing`: error | mean | median | a number, or a list with one for each feature: the value of
///   missing inputs. Mean and median are those of the training examples that are not held out.
///   Default error.
/// - `task`, `num_classes`: see read_task. Text labels are names of classes, which are numbered in
///   the order of the names in the training file.
///
/// Inputs are floats, [features]. *Errors:* as read_csv; DataError if the columns of another file
/// are not those of the training file; ConfigError on values out of range.
DataSplits load_csv(const Config& data, uint64_t seed);
DatasetType csv_dataset();

}  // namespace lacuna
