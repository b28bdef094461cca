#include "lacuna/framework/data/csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/data/formats/csv_records.h"
#include "lacuna/framework/data/formats/text_file.h"

namespace lacuna {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Reads the fields of one table into its examples.
class TableBuilder {
 public:
  TableBuilder(CsvRecords& records, const CsvOptions& options)
      : records_(records), options_(options) {}

  void set_columns(std::vector<std::string> columns, int64_t label) {
    table_.columns = std::move(columns);
    label_ = label;
  }

  void add(const std::vector<CsvField>& fields) {
    if (fields.size() != table_.columns.size()) {
      records_.fail(fields.front(), fmt::format("expected {} fields, found {}",
                                                table_.columns.size(), fields.size()));
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      if (static_cast<int64_t>(i) != label_) {
        inputs_.push_back(static_cast<float>(number(fields[i], i)));
      } else if (options_.task == Task::Classification) {
        table_.examples.labels.push_back(label(fields[i], i));
      } else {
        table_.examples.targets.push_back(static_cast<float>(number(fields[i], i)));
      }
    }
  }

  CsvTable finish() {
    Examples& examples = table_.examples;
    examples.example_shape =
        Shape{static_cast<int64_t>(table_.columns.size()) - (label_ >= 0 ? 1 : 0)};
    examples.inputs = std::move(inputs_);
    if (options_.task == Task::Classification) {
      examples.num_classes = options_.num_classes > 0
                                 ? options_.num_classes
                                 : *std::ranges::max_element(examples.labels) + 1;
    } else if (options_.task == Task::Regression) {
      examples.num_outputs = 1;
    }
    return std::move(table_);
  }

 private:
  // The whole field as a number, or nothing; infinite where it is beyond float32.
  static std::optional<double> parse(const CsvField& field) {
    std::string_view digits = trimmed(field.text);
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    double value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || stop != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
    return std::abs(value) > std::numeric_limits<float>::max()
               ? std::numeric_limits<double>::infinity()
               : value;
  }

  double number(const CsvField& field, size_t column) const {
    const std::optional<double> value = parse(field);
    if (!value) fail(field, column, "a number");
    if (!std::isfinite(*value)) fail(field, column, "a finite number that float32 can hold");
    return *value;
  }

  int64_t label(const CsvField& field, size_t column) const {
    const std::optional<double> value = parse(field);
    const int64_t bound = options_.num_classes > 0 ? options_.num_classes : kMaxClasses;
    if (!value || *value != std::floor(*value) || *value < 0 ||
        *value >= static_cast<double>(bound)) {
      fail(field, column, fmt::format("a label, which is an integer from 0 to {}", bound - 1));
    }
    return static_cast<int64_t>(*value);
  }

  [[noreturn]] void fail(const CsvField& field, size_t column, const std::string& expected) const {
    records_.fail(field, "field '" + table_.columns[column] + "': expected " + expected +
                             ", found '" + std::string(field.text.substr(0, 40)) + "'");
  }

  CsvRecords& records_;
  const CsvOptions& options_;
  CsvTable table_;
  std::vector<float> inputs_;
  int64_t label_ = -1;
};

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

}  // namespace

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  const std::string text = read_text_file(path);
  CsvRecords records(path.string(), text, options.delimiter);
  std::vector<CsvField> fields;
  bool has_record = records.next(fields);
  if (!has_record) throw DataError(path.string() + ": the file is empty");
  std::vector<std::string> columns;
  for (const CsvField& field : fields) {
    columns.push_back(options.header == CsvHeader::Present ? unescape_csv(trimmed(field.text))
                                                           : std::to_string(columns.size()));
  }
  if (options.header == CsvHeader::Present) has_record = records.next(fields);
  const int64_t label = find_label(path.string(), options, columns);
  if (label >= 0 && columns.size() == 1) {
    throw DataError(path.string() +
                    ": the label's column is the only one; expected at least one input column"
                    " (is the delimiter right?)");
  }
  if (!has_record) throw DataError(path.string() + ": no examples after the header");

  TableBuilder builder(records, options);
  builder.set_columns(std::move(columns), label);
  for (; has_record; has_record = records.next(fields)) builder.add(fields);
  return builder.finish();
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

}  // namespace

DataSplits load_csv(const Config& data, uint64_t /*seed*/) {
  CsvOptions options = read_options(data);
  const auto train_path = data.required<std::string>("train");
  const auto test_path = data.optional<std::string>("test");
  CsvTable train = read_csv(train_path, options);
  options.num_classes = train.examples.num_classes;
  DataSplits splits;
  splits.train = std::make_shared<const ArrayDataset>(std::move(train.examples));
  if (test_path) {
    CsvTable test = read_csv(*test_path, options);
    if (test.columns != train.columns) {
      throw DataError(*test_path + ": expected the columns of " + train_path + " (" +
                      join(train.columns, ", ") + "), found " + join(test.columns, ", "));
    }
    splits.test = std::make_shared<const ArrayDataset>(std::move(test.examples));
  }
  return splits;
}

}  // namespace lacuna
