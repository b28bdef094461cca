// The `csv` section of a configuration: its keys, and the splits made by them.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/data_checks.hpp"
#include "lacuna/framework/data/formats/csv_fields.hpp"
#include "lacuna/framework/data/formats/image.hpp"
#include "lacuna/framework/data/missing_values.hpp"
#include "lacuna/framework/data/types/csv.h"
#include "lacuna/framework/data/types/csv_table.hpp"
#include "lacuna/framework/data/types/npz_dataset.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

// Names of columns, or their numbers where no line names them.
std::vector<std::string> column_list(const Config& data, const char* key, CsvHeader header) {
  const Config node = data.get(key);
  if (node.is_null()) return {};
  std::vector<std::string> names = node.is_list()
                                       ? node.as<std::vector<std::string>>()
                                       : std::vector<std::string>{node.as<std::string>()};
  for (size_t i = 0; header == CsvHeader::Absent && i < names.size(); ++i) {
    const Config column = node.is_list() ? node.items()[i] : node;
    if (!column.is_number()) {
      column.fail("the number of a column, since there is no header that names the columns");
    }
    column.as<int64_t>();
  }
  return names;
}

void read_dates(const Config& data, CsvOptions& options) {
  const Config node = data.get("dates");
  if (!node.is_map()) {
    for (const std::string& name : column_list(data, "dates", options.header)) {
      options.dates[name] = "";
    }
    return;
  }
  for (const auto& [name, format] : node.entries()) {
    options.dates[name] = format.as<std::string>();
    if (is_date_format(options.dates[name])) continue;
    format.fail("a format of %Y or %y, %m, %b or %B, and %d, with %H, %M and %S as needed");
  }
}

// The choice of `missing`, and the values that it gives.
struct MissingKey {
  Missing how = Missing::None;
  std::vector<double> values = {};
};

MissingKey read_missing(const Config& data) {
  const Config node = data.get("missing");
  if (node.is_list()) return {Missing::Given, node.as<std::vector<double>>()};
  if (node.is_number()) return {Missing::Given, {node.as<double>()}};
  const auto name = data.get<std::string>("missing", "error");
  if (name == "error") return {};
  if (name == "mean") return {Missing::Mean};
  if (name == "median") return {Missing::Median};
  node.fail("error, mean, median, or a number");
}

CsvOptions read_options(const Config& data) {
  CsvOptions options;
  options.header = data.get<bool>("header", true) ? CsvHeader::Present : CsvHeader::Absent;
  const auto delimiter = data.get<std::string>("delimiter", ",");
  if (delimiter.size() != 1 || std::isalnum(static_cast<unsigned char>(delimiter[0])) != 0 ||
      std::strchr("\"\r\n+-.", delimiter[0]) != nullptr) {
    data.get("delimiter").fail("one character that cannot be part of a number");
  }
  options.delimiter = delimiter[0];
  const Config label = data.get("label_column");
  if (label.is_scalar() && !label.is_number()) {
    options.label_column = label.as<std::string>();
    if (options.header == CsvHeader::Absent) {
      label.fail("an index, since there is no header that names the columns");
    }
  } else {
    options.label_column = data.get<int64_t>("label_column", -1);
  }
  options.dropped = column_list(data, "drop_columns", options.header);
  for (const std::string& name : column_list(data, "categories", options.header)) {
    options.categories[name] = {};
  }
  read_dates(data, options);
  options.missing =
      read_missing(data).how == Missing::None ? CsvMissing::Refused : CsvMissing::Kept;
  options.has_missing_names = data.optional<bool>("missing_names").value_or(false);
  const TaskKeys keys = read_task(data);
  options.task = keys.task;
  options.num_classes = keys.num_classes;
  return options;
}

// The column of a number from 0, or from the end where it is negative; others as they are.
std::string column_name(const std::vector<std::string>& columns, const std::string& given) {
  if (std::ranges::find(columns, given) != columns.end()) return given;
  const auto count = static_cast<int64_t>(columns.size());
  const auto index = Config::plain(given).as<int64_t>();
  return columns[static_cast<size_t>(index < 0 ? index + count : index)];
}

// Another table may have the columns at other places: numbers of columns that have been found give
// way to their names.
void write_column_names(Config data, const std::vector<std::string>& columns) {
  for (const char* key : {"drop_columns", "categories", "dates"}) {
    const Config node = data.get(key);
    Config named = node.is_map() ? Config::map() : Config::list();
    for (const auto& [name, value] : node.children()) {
      if (node.is_map()) named.set(column_name(columns, name), value);
      if (node.is_list()) {
        named.push_back(Config::from_value(column_name(columns, value.as<std::string>())));
      }
    }
    if (node.is_scalar()) named = Config::from_value(column_name(columns, node.as<std::string>()));
    if (!node.is_null() && !(named == node)) data.set(key, named);
  }
}

// Those of the one that the other has not.
std::vector<std::string> only_in(const std::vector<std::string>& one,
                                 const std::vector<std::string>& other) {
  const std::set<std::string_view> known(other.begin(), other.end());
  std::vector<std::string> rest;
  std::ranges::copy_if(one, std::back_inserter(rest),
                       [&](const std::string& name) { return !known.contains(name); });
  return rest;
}

// What is another in the columns found; of a few, which are all shown, the eye sees it.
std::string column_differences(const std::vector<std::string>& expected,
                               const std::vector<std::string>& found) {
  constexpr size_t kSeen = 6;
  if (expected.size() <= kSeen && found.size() <= kSeen) return "";
  const std::vector<std::string> missing = only_in(expected, found),
                                 unknown = only_in(found, expected);
  std::string text;
  if (!missing.empty()) text += "; missing: " + listed_columns(missing);
  if (!unknown.empty()) text += "; not known: " + listed_columns(unknown);
  if (!text.empty()) return text;
  const auto [first, here] = std::ranges::mismatch(expected, found);
  return first == expected.end()
             ? ""
             : "; these are the same in another order: '" + *here + "' where '" + *first +
                   "' is expected; bring them into that order";
}

void require_columns_of(const std::string& train_path, const std::vector<std::string>& expected,
                        const std::string& test_path, const std::vector<std::string>& found) {
  if (found == expected) return;
  throw DataError(test_path + ": expected the columns of " + train_path + " (" +
                  listed_columns(expected) + "), found " + listed_columns(found) +
                  column_differences(expected, found));
}

// The same of a model, which knows the inputs' columns and the label's.
void require_known_columns(const KnownData& known, const std::string& path, const CsvTable& found) {
  const std::string& name = found.columns[static_cast<size_t>(found.label)];
  if (found.inputs == known.columns && name == known.label_column) return;
  throw DataError(fmt::format(
      "{}: expected the columns that the model was trained on ({}, and '{}' for the label), found "
      "{}, and '{}'{}",
      path, listed_columns(known.columns), known.label_column, listed_columns(found.inputs), name,
      column_differences(known.columns, found.inputs)));
}

// An example in place of the header is lost as an example, and nothing else would show it.
void report_numbers_for_names(const std::string& path, const std::vector<std::string>& columns) {
  std::vector<double> numbers;
  for (const std::string& name : columns) {
    const Config value = Config::plain(name);
    if (!value.is_number()) return;
    numbers.push_back(value.as<double>());
  }
  const auto is_whole = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  bool are_counted = std::ranges::all_of(columns, is_whole);  // as pixels are: 0, 1, 2, …
  for (size_t i = 1; i < numbers.size(); ++i) are_counted &= numbers[i] == numbers[i - 1] + 1.0;
  if (numbers.empty() || are_counted) return;
  log_warning(
      fmt::format("{}: the first line is read as the columns' names, but these are numbers ({}); "
                  "if it is an example, set data.header: false",
                  path, listed_columns(columns)));
}

std::shared_ptr<const Dataset> read_split(const std::string& path, const CsvOptions& options) {
  CsvTable table = read_csv(path, options);
  report_unknown_categories(path, table);
  return std::make_shared<const ArrayDataset>(std::move(table.examples));
}

void set_missing(const Config& data, int64_t features, DataSplits& splits) {
  const MissingKey key = read_missing(data);
  splits.missing = key.how;
  splits.fill = key.values;
  if (splits.fill.size() == 1) splits.fill.resize(static_cast<size_t>(features), splits.fill[0]);
  const bool is_finite =
      std::ranges::all_of(splits.fill, [](double value) { return std::isfinite(value); });
  if (key.how != Missing::Given ||
      (is_finite && splits.fill.size() == static_cast<size_t>(features)))
    return;
  data.get("missing").fail(
      fmt::format("a finite number, or one for each of the {} features", features));
}

}  // namespace

DataSplits load_csv(const Config& data, uint64_t /*seed*/) {
  CsvOptions options = read_options(data);
  const auto train_path = data.required<std::string>("train");
  const std::optional<std::string> paths[] = {path_of_split(data, "validation"),
                                              path_of_split(data, "test")};
  CsvTable train = read_csv(train_path, options);
  options.num_classes = train.examples.num_classes;
  options.class_names = train.examples.class_names;
  options.categories = train.categories;
  DataSplits splits;
  if (options.header == CsvHeader::Present) {
    write_column_names(data, train.columns);
    splits.columns = train.inputs;
    splits.label_column = train.columns[static_cast<size_t>(train.label)];
    report_numbers_for_names(train_path, splits.columns);
  }
  splits.categories = train.categories;
  set_missing(data, train.examples.example_shape[0], splits);
  splits.train = std::make_shared<const ArrayDataset>(std::move(train.examples));
  std::shared_ptr<const Dataset>* const others[] = {&splits.validation, &splits.test};
  for (size_t i = 0; i < std::size(others); ++i) {
    if (!paths[i]) continue;
    options.check_columns = [&](const CsvTable& found) {
      require_columns_of(train_path, train.columns, *paths[i], found.columns);
    };
    *others[i] = read_split(*paths[i], options);
  }
  return splits;
}

namespace {

DataSplits load_csv_held_out(const Config& data, uint64_t /*seed*/, const KnownData& known) {
  CsvOptions options = read_options(data);
  DataSplits splits;
  options.num_classes = known.num_classes;
  options.class_names = known.class_names;
  options.categories = known.categories;
  if (options.header == CsvHeader::Present) {
    splits.columns = known.columns;
    splits.label_column = known.label_column;
  }
  splits.categories = known.categories;
  if (!known.fill.empty()) {
    splits.missing = Missing::Given;
    splits.fill = known.fill;
  }
  for (const auto& [key, split] :
       {std::pair{"validation", &splits.validation}, std::pair{"test", &splits.test}}) {
    const std::optional<std::string> path = path_of_split(data, key);
    if (!path) continue;
    if (!splits.columns.empty()) {
      options.check_columns = [&](const CsvTable& found) {
        require_known_columns(known, *path, found);
      };
    }
    *split = read_split(*path, options);
  }
  return splits;
}

// A table of the training data's kind, to predict from.
CsvOptions options_to_predict(const Config& data, const KnownData& known) {
  CsvOptions options = read_options(data);
  options.categories = known.categories;
  options.class_names = known.class_names;
  options.num_classes = known.num_classes;
  if (options.header == CsvHeader::Absent) {
    int64_t columns = known.example_shape.rank() == 1 ? known.example_shape[0] : 0;
    for (const auto& [name, categories] : known.categories) {
      columns -= static_cast<int64_t>(categories.size()) - 1;
    }
    options.trained_columns = columns + static_cast<int64_t>(options.dropped.size()) + 1;
  } else if (!known.columns.empty()) {
    options.wanted = CsvColumns{.inputs = known.columns, .label = known.label_column};
  } else {  // which earlier versions did not save
    options.header = CsvHeader::Guessed;
    options.task = Task::None;
  }
  return options;
}

// A file of any name, and no image, is read as the training data was.
std::optional<Examples> read_csv_examples(const std::string& path, const Config& data,
                                          const KnownData& known) {
  std::error_code unknown;
  const bool is_other = !is_table_name(path) && (std::filesystem::is_directory(path, unknown) ||
                                                 is_numpy_name(path) || is_image_file(path));
  if (is_other) return std::nullopt;
  Examples examples = read_csv_inputs(path, options_to_predict(data, known));
  if (!known.fill.empty()) fill_missing(known.fill, examples);
  return examples;
}

}  // namespace

DatasetType csv_dataset() {
  return {.load = load_csv,
          .paths = {"train", "test", "validation"},
          .load_held_out = load_csv_held_out,
          .read_inputs = read_csv_examples,
          .split_keys = split_keys_with_test(),
          .late_keys = std::vector<std::string>(),
          .new_run_keys = {{"missing_names", "true"}}};
}

}  // namespace lacuna
