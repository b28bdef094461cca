#include "lacuna/framework/data/types/csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/formats/csv_records.hpp"
#include "lacuna/framework/data/formats/image.hpp"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/data/types/csv_table.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {
namespace {

// Some of them, where they are many.
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  if (names.size() <= kMost) return join(names, ", ");
  return join(std::span(names).first(kMost), ", ") + fmt::format(", … ({} in all)", names.size());
}

// Index of the label's column, −1 for Task::None.
int64_t find_label(const std::string& path, const CsvOptions& options,
                   const std::vector<std::string>& columns) {
  if (options.task == Task::None) return -1;
  const auto count = static_cast<int64_t>(columns.size());
  if (const auto* name = std::get_if<std::string>(&options.label_column)) {
    const auto found = std::ranges::find(columns, *name);
    if (found == columns.end()) {
      throw DataError(path + ": no column '" + *name + "'; " + suggest_name(*name, columns));
    }
    return found - columns.begin();
  }
  const int64_t index = std::get<int64_t>(options.label_column);
  if (index < -count || index >= count) {
    throw DataError(fmt::format("{}: no column {}; the file has {} columns", path, index, count));
  }
  return index < 0 ? index + count : index;
}

// What predicts from columns of known names: each by its name, wherever it stands.
std::vector<int64_t> match_columns(const std::string& path, const CsvColumns& wanted,
                                   const std::vector<std::string>& columns, int64_t label,
                                   CsvTable& table) {
  std::map<std::string_view, int64_t> place;
  for (size_t i = 0; i < wanted.inputs.size(); ++i) {
    place[wanted.inputs[i]] = static_cast<int64_t>(i);
  }
  std::vector<int64_t> input_of(columns.size(), -1);
  std::vector<std::string> extra;
  std::set<std::string_view> found;
  int64_t last = -1;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto input = place.find(columns[i]);
    if (input != place.end()) {
      input_of[i] = input->second;
      found.insert(columns[i]);
      if (input->second < last) table.reordered.push_back(columns[i]);
      last = input->second;
    } else if (static_cast<int64_t>(i) != label) {
      extra.push_back(columns[i]);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& name : wanted.inputs) {
    if (!found.contains(name)) missing.push_back(name);
  }
  table.extra = extra;
  if (missing.empty()) return input_of;
  std::string message =
      path + ": columns that the model was trained on are missing: " + listed(missing);
  if (!extra.empty()) message += "; there are others that it does not know: " + listed(extra);
  if (found.empty()) {
    message += "; the first line must name the columns, as that of the training data does";
  }
  throw DataError(message);
}

// Whether no field is a number, as where the first line names the columns.
bool names_columns(const std::vector<CsvField>& fields) {
  return std::ranges::any_of(fields, [](const CsvField& f) { return !parse_field(f.text); });
}

void require_good_names(const std::string& path, const std::vector<std::string>& columns) {
  std::map<std::string_view, size_t> first;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].find('\0') != std::string::npos) {
      throw DataError(path +
                      ": its first line holds zero bytes, which no table of text in UTF-8 has");
    }
    if (!is_utf8(columns[i])) {
      throw DataError(fmt::format("{}: the name of column {}, '{}', is not text in UTF-8", path,
                                  i + 1, printable(columns[i], 60)));
    }
    const auto [before, is_new] = first.emplace(columns[i], i);
    if (is_new) continue;
    throw DataError(fmt::format("{}: columns {} and {} have the same name, '{}'", path,
                                before->second + 1, i + 1, printable(columns[i], 60)));
  }
}

}  // namespace

CsvTable read_csv_text(const std::string& path, std::string_view text, const CsvOptions& options) {
  CsvRecords records(path, text, options.delimiter);
  std::vector<CsvField> fields;
  bool has_record = records.next(fields);
  if (!has_record) throw DataError(path + ": the file is empty");
  const bool has_header = options.header == CsvHeader::Guessed
                              ? names_columns(fields)
                              : options.header == CsvHeader::Present;
  std::vector<std::string> columns;
  for (const CsvField& field : fields) {
    columns.push_back(has_header ? unescape_csv(trimmed_field(field.text))
                                 : std::to_string(columns.size()));
  }
  if (has_header) require_good_names(path, columns);
  if (has_header) has_record = records.next(fields);
  CsvTable matched;
  int64_t label = -1;
  std::vector<int64_t> input_of(columns.size());
  if (options.wanted) {
    const auto found = std::ranges::find(columns, options.wanted->label);
    if (options.task != Task::None && found != columns.end()) label = found - columns.begin();
    input_of = match_columns(path, *options.wanted, columns, label, matched);
  } else {
    label = find_label(path, options, columns);
    int64_t next = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      input_of[i] = static_cast<int64_t>(i) == label ? -1 : next++;
    }
  }
  if (label >= 0 && columns.size() == 1) {
    throw DataError(path +
                    ": the label's column is the only one; expected at least one input column"
                    " (is the delimiter right?)");
  }
  if (options.check_columns) options.check_columns(columns, label);
  if (!has_record) {
    const bool has_returns = text.find('\r') < text.find('\n');
    throw DataError(path + ": no examples after the header" +
                    (has_returns && text.find("\r\n") == std::string_view::npos
                         ? "; its lines end in carriage returns alone, expected line feeds"
                         : ""));
  }

  TableBuilder builder(records, options);
  builder.set_columns(std::move(columns), std::move(input_of), label);
  for (; has_record; has_record = records.next(fields)) builder.add(fields);
  CsvTable table = builder.finish();
  table.label = label;
  table.extra = std::move(matched.extra);
  table.reordered = std::move(matched.reordered);
  return table;
}

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  try {
    return read_csv_text(path.string(), read_text_file(path), options);
  } catch (const std::bad_alloc&) {
    throw DataError(path.string() +
                    ": there is not enough memory for the table; it takes the file's size, and "
                    "four bytes for each of its numbers");
  }
}

bool is_table_name(std::string_view path) {
  return path == "-" || path.ends_with(".csv") || path.ends_with(".csv.gz");
}

Examples read_csv_inputs(const std::string& path, const CsvOptions& options) {
  const std::string name = path == "-" ? "standard input" : path;
  CsvTable table =
      path == "-" ? read_csv_text(name, read_standard_input(), options) : read_csv(path, options);
  if (!table.extra.empty()) {
    log_warning(fmt::format("{}: columns that the model was not trained on are left out: {}", name,
                            listed(table.extra)));
  }
  if (!table.reordered.empty()) {
    log_warning(
        fmt::format("{}: columns are in another order than in training, and are taken by "
                    "their names: {}",
                    name, listed(table.reordered)));
  }
  return std::move(table.examples);
}

namespace {

CsvOptions read_options(const Config& data) {
  CsvOptions options;
  options.header = data.get<bool>("header", true) ? CsvHeader::Present : CsvHeader::Absent;
  const auto delimiter = data.get<std::string>("delimiter", ",");
  if (delimiter.size() != 1 || std::isalnum(static_cast<unsigned char>(delimiter[0])) != 0 ||
      std::strchr("\"\r\n+-.", delimiter[0]) != nullptr) {
    data.get("delimiter").fail("one character that cannot stand in a number");
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
  const TaskKeys keys = read_task(data);
  options.task = keys.task;
  options.num_classes = keys.num_classes;
  return options;
}

// The columns of the inputs, in their order.
std::vector<std::string> input_columns(const std::vector<std::string>& columns, int64_t label) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (static_cast<int64_t>(i) != label) inputs.push_back(columns[i]);
  }
  return inputs;
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
  if (!missing.empty()) text += "; missing: " + listed(missing);
  if (!unknown.empty()) text += "; not known: " + listed(unknown);
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
  throw DataError(test_path + ": expected the columns of " + train_path + " (" + listed(expected) +
                  "), found " + listed(found) + column_differences(expected, found));
}

// The same of a model, which knows the inputs' columns and the label's.
void require_known_columns(const KnownData& known, const std::string& path,
                           const std::vector<std::string>& columns, int64_t label) {
  const std::vector<std::string> inputs = input_columns(columns, label);
  const std::string& name = columns[static_cast<size_t>(label)];
  if (inputs == known.columns && name == known.label_column) return;
  throw DataError(fmt::format(
      "{}: expected the columns that the model was trained on ({}, and '{}' for the label), found "
      "{}, and '{}'{}",
      path, listed(known.columns), known.label_column, listed(inputs), name,
      column_differences(known.columns, inputs)));
}

// An example in the place of the header is lost as one, and nothing else would tell.
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
  log_warning(fmt::format(
      "{}: the first line is taken for the columns' names, and these are numbers ({}); if it is an "
      "example, say data.header: false",
      path, listed(columns)));
}

}  // namespace

DataSplits load_csv(const Config& data, uint64_t /*seed*/) {
  CsvOptions options = read_options(data);
  const auto train_path = data.required<std::string>("train");
  const auto test_path = data.optional<std::string>("test");
  CsvTable train = read_csv(train_path, options);
  options.num_classes = train.examples.num_classes;
  options.class_names = train.examples.class_names;
  DataSplits splits;
  if (options.header == CsvHeader::Present) {
    splits.columns = input_columns(train.columns, train.label);
    splits.label_column = train.columns[static_cast<size_t>(train.label)];
    report_numbers_for_names(train_path, splits.columns);
  }
  splits.train = std::make_shared<const ArrayDataset>(std::move(train.examples));
  if (test_path) {
    options.check_columns = [&](const std::vector<std::string>& found, int64_t) {
      require_columns_of(train_path, train.columns, *test_path, found);
    };
    CsvTable test = read_csv(*test_path, options);
    splits.test = std::make_shared<const ArrayDataset>(std::move(test.examples));
  }
  return splits;
}

namespace {

DataSplits load_csv_held_out(const Config& data, uint64_t /*seed*/, const KnownData& known) {
  CsvOptions options = read_options(data);
  DataSplits splits;
  const auto test_path = data.optional<std::string>("test");
  if (!test_path) return splits;
  options.num_classes = known.num_classes;
  options.class_names = known.class_names;
  if (options.header == CsvHeader::Present && !known.columns.empty()) {
    options.check_columns = [&](const std::vector<std::string>& columns, int64_t label) {
      require_known_columns(known, *test_path, columns, label);
    };
    splits.columns = known.columns;
    splits.label_column = known.label_column;
  }
  CsvTable test = read_csv(*test_path, options);
  splits.test = std::make_shared<const ArrayDataset>(std::move(test.examples));
  return splits;
}

// A file of any name, and no image, is read as the training data was.
std::optional<Examples> read_inputs(const std::string& path, const Config& data,
                                    const KnownData& known) {
  std::error_code unknown;
  const bool is_other =
      !is_table_name(path) && (std::filesystem::is_directory(path, unknown) || is_image_file(path));
  if (is_other) return std::nullopt;
  CsvOptions options{.header = CsvHeader::Guessed, .task = Task::None};
  options.delimiter = data.get<std::string>("delimiter", ",").front();
  if (!data.get<bool>("header", true)) {
    options.header = CsvHeader::Absent;
  } else if (!known.columns.empty()) {  // which earlier versions did not save
    options.header = CsvHeader::Present;
    options.wanted = CsvColumns{.inputs = known.columns, .label = known.label_column};
    const bool is_regression = data.get("task").text() == "regression";
    options.task = is_regression ? Task::Regression : Task::Classification;
    options.class_names = known.class_names;
    options.num_classes = static_cast<int64_t>(known.class_names.size());
  }
  return read_csv_inputs(path, options);
}

}  // namespace

DatasetType csv_dataset() {
  return {.load = load_csv,
          .paths = {"train", "test"},
          .load_held_out = load_csv_held_out,
          .read_inputs = read_inputs,
          .late_keys = std::vector<std::string>()};
}

}  // namespace lacuna
