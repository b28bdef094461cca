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

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/formats/csv_fields.hpp"
#include "lacuna/framework/data/formats/csv_records.hpp"
#include "lacuna/framework/data/formats/text_file.hpp"
#include "lacuna/framework/data/types/csv_table.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna {

std::string listed_columns(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  if (names.size() <= kMost) return join(names, ", ");
  return join(std::span(names).first(kMost), ", ") + fmt::format(", … ({} in all)", names.size());
}

namespace {

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
    throw DataError(
        fmt::format("{}: no column {}; the file has {}", path, index, plural(count, "column")));
  }
  return index < 0 ? index + count : index;
}

// The columns' numbers, where no line names them: all of those in training, or the inputs' alone.
std::vector<std::string> numbered_columns(const std::string& path, const CsvOptions& options,
                                          size_t fields) {
  std::vector<std::string> columns;
  const auto total = static_cast<size_t>(options.trained_columns);
  if (total == 0 || fields == total) {
    for (size_t i = 0; i < fields; ++i) columns.push_back(std::to_string(i));
    return columns;
  }
  std::set<std::string> others;
  const auto leave_out = [&](int64_t index) {
    others.insert(std::to_string(index < 0 ? index + options.trained_columns : index));
  };
  for (const std::string& name : options.dropped) leave_out(Config::plain(name).as<int64_t>());
  leave_out(std::get<int64_t>(options.label_column));
  for (size_t i = 0; i < total; ++i) {
    if (!others.contains(std::to_string(i))) columns.push_back(std::to_string(i));
  }
  if (columns.size() != fields) {
    throw DataError(
        fmt::format("{}: the first line has {}; expected {}, as the inputs are, or {}, as in "
                    "training",
                    path, plural(static_cast<int64_t>(fields), "field"), columns.size(), total));
  }
  return columns;
}

// The place of a column that is given by its name or its number; empty where it is missing and need
// not be.
std::optional<size_t> find_given(const std::string& path, const CsvOptions& options,
                                 const std::vector<std::string>& columns,
                                 const std::string& given) {
  const auto named = std::ranges::find(columns, given);
  if (named != columns.end()) return named - columns.begin();
  const Config number = Config::plain(given);
  const bool is_index =
      number.is_number() && given.find_first_not_of("-0123456789") == std::string::npos;
  if (is_index) {
    const auto count = std::max(options.trained_columns, static_cast<int64_t>(columns.size()));
    int64_t index = number.as<int64_t>();
    if (index < 0) index += count;
    if (options.header != CsvHeader::Absent) {
      if (index >= 0 && index < count) return index;
    } else {
      const auto found = std::ranges::find(columns, std::to_string(index));
      if (found != columns.end()) return found - columns.begin();
    }
  }
  if (options.wanted || options.trained_columns > 0) return std::nullopt;
  throw DataError(path + ": no column '" + given + "'; " + suggest_name(given, columns));
}

// Columns that are not inputs as they are.
CsvRoles find_roles(const std::string& path, const CsvOptions& options,
                    const std::vector<std::string>& columns, int64_t label) {
  CsvRoles roles{.columns = columns, .input_of = {}, .label = label};
  roles.input_of.assign(columns.size(), 0);
  roles.categories.assign(columns.size(), nullptr);
  roles.dates.assign(columns.size(), nullptr);
  std::vector<const char*> keys(columns.size(), nullptr);
  if (label >= 0) keys[static_cast<size_t>(label)] = "label_column";
  const auto take = [&](const std::string& given, const char* key, const auto& use) {
    const std::optional<size_t> found = find_given(path, options, columns, given);
    if (!found) return;
    if (keys[*found] != nullptr) {
      throw DataError(
          fmt::format("{}: the column '{}' is named by both {} and {}; leave one of them out", path,
                      columns[*found], keys[*found], key));
    }
    keys[*found] = key;
    use(*found);
  };
  for (const std::string& name : options.dropped) {
    const bool is_named = std::ranges::find(columns, name) != columns.end();
    if (options.wanted && !is_named) continue;  // a number counts the training data's columns
    take(name, "drop_columns", [&](size_t i) { roles.input_of[i] = -1; });
  }
  for (const auto& entry : options.categories) {
    take(entry.first, "categories", [&](size_t i) { roles.categories[i] = &entry.second; });
  }
  for (const auto& entry : options.dates) {
    take(entry.first, "dates", [&](size_t i) { roles.dates[i] = &entry.second; });
  }
  if (label >= 0) roles.input_of[static_cast<size_t>(label)] = -1;
  return roles;
}

// For prediction from columns of known names: each is found by its name, at any place.
void match_columns(const std::string& path, const CsvColumns& wanted, CsvRoles& roles,
                   CsvTable& table) {
  const std::vector<std::string>& columns = roles.columns;
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
    } else if (static_cast<int64_t>(i) != roles.label && roles.input_of[i] >= 0) {
      extra.push_back(columns[i]);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& name : wanted.inputs) {
    if (!found.contains(name)) missing.push_back(name);
  }
  table.extra = extra;
  roles.input_of = input_of;
  if (missing.empty()) return;
  std::string message =
      path + ": columns that the model was trained on are missing: " + listed_columns(missing);
  if (!extra.empty())
    message += "; it has columns that the model does not know: " + listed_columns(extra);
  if (found.empty()) {
    message += "; the first line must name the columns, as in the training data";
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
                      ": its first line contains zero bytes; expected a table of UTF-8 text");
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
  if (has_header) {
    for (const CsvField& field : fields) {
      columns.push_back(std::string(trimmed_field(unescaped(field))));
    }
    require_good_names(path, columns);
    has_record = records.next(fields);
  } else {
    columns = numbered_columns(path, options, fields.size());
  }
  CsvTable matched;
  int64_t label = -1;
  if (options.wanted) {
    const auto found = std::ranges::find(columns, options.wanted->label);
    if (options.task != Task::None && found != columns.end()) label = found - columns.begin();
  } else if (static_cast<int64_t>(columns.size()) >= options.trained_columns) {
    label = find_label(path, options, columns);
  }
  CsvRoles roles = find_roles(path, options, columns, label);
  if (options.wanted) {
    match_columns(path, *options.wanted, roles, matched);
  } else {
    int64_t next = 0;
    for (int64_t& input : roles.input_of) input = input < 0 ? -1 : next++;
    if (next == 0 && columns.size() > 1) {
      throw DataError(path + ": no column is left as an input");
    }
  }
  if (label >= 0 && columns.size() == 1) {
    throw DataError(path +
                    ": the label's column is the only one; expected at least one input column"
                    " (is the delimiter right?)");
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (roles.input_of[i] >= 0) matched.inputs.push_back(columns[i]);
  }
  matched.columns = columns;
  matched.label = label;
  if (options.check_columns) options.check_columns(matched);
  if (!has_record) {
    const bool has_returns = text.find('\r') < text.find('\n');
    throw DataError(path + ": no examples after the header" +
                    (has_returns && text.find("\r\n") == std::string_view::npos
                         ? "; its lines end only in carriage returns; expected line feeds"
                         : ""));
  }

  TableBuilder builder(records, options);
  builder.set_roles(std::move(roles));
  for (; has_record; has_record = records.next(fields)) builder.add(fields);
  CsvTable table = builder.finish(path);
  table.inputs = std::move(matched.inputs);
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

void report_unknown_categories(const std::string& path, const CsvTable& table) {
  for (const std::string& column : table.unknown) {
    log_warning(
        fmt::format("{}: {}: not among the categories of the training data, so that all "
                    "inputs of the column are 0 there",
                    path, column));
  }
}

bool is_table_name(std::string_view path) {
  return path == "-" || path.ends_with(".csv") || path.ends_with(".csv.gz");
}

Examples read_csv_inputs(const std::string& path, const CsvOptions& options) {
  const std::string name = path == "-" ? "standard input" : path;
  CsvTable table =
      path == "-" ? read_csv_text(name, read_standard_input(), options) : read_csv(path, options);
  report_unknown_categories(name, table);
  if (!table.extra.empty()) {
    log_warning(fmt::format("{}: columns that the model was not trained on are ignored: {}", name,
                            listed_columns(table.extra)));
  }
  if (!table.reordered.empty()) {
    log_warning(fmt::format(
        "{}: columns are in a different order than in training, and are matched by name: {}", name,
        listed_columns(table.reordered)));
  }
  return std::move(table.examples);
}

}  // namespace lacuna
