// TableBuilder: the fields of a CSV file, gathered into the examples of one table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/data/formats/csv_records.hpp"
#include "lacuna/framework/data/types/csv.h"

namespace lacuna {

/// Some of them, where they are many.
std::string listed_columns(const std::vector<std::string>& names);

/// A warning for each column of a table that has unknown categories.
void report_unknown_categories(const std::string& path, const CsvTable& table);

/// What the columns of a table are.
struct CsvRoles {
  std::vector<std::string> columns;  ///< all their names
  std::vector<int64_t> input_of;     ///< for each column the input that it is, or −1
  int64_t label = -1;                ///< the column of the label, or −1
  /// For each column: the categories that it may have, none where all are new; null where it has
  /// none. And its format of dates; null where it has none.
  std::vector<const std::vector<std::string>*> categories = {};
  std::vector<const std::string*> dates = {};
};

/// Reads records, whose positions errors name, into a CsvTable.
class TableBuilder {
 public:
  TableBuilder(CsvRecords& records, const CsvOptions& options)
      : records_(records), options_(options) {}

  void set_roles(CsvRoles roles);
  /// *Errors:* DataError with the position.
  void add(const std::vector<CsvField>& fields);
  /// `path` is for messages. *Errors:* DataError.
  CsvTable finish(const std::string& path);

 private:
  // The categories of a column, as they are met.
  struct Categories {
    bool are_known = false;
    std::vector<std::string> names;  // as they came, or as they are known
    std::map<std::string, int64_t, std::less<>> code_of;
    std::map<std::string, int64_t, std::less<>> unknown;  // how often
    std::map<std::string, bool, std::less<>> words;       // such as NA: whether between quotes
    int64_t count = 0;                                    // fields that have one
  };

  double number(const CsvField& field, size_t column, const std::vector<CsvField>& record) const;
  double input(const CsvField& field, size_t column, const std::vector<CsvField>& record);
  double category(const CsvField& field, size_t column);
  double missing_category(const CsvField& field, size_t column) const;
  void require_one_form(const CsvField& field, size_t column, const std::string& name);
  std::string remedy_for(size_t column, const std::vector<CsvField>& record) const;
  int64_t label(const CsvField& field, size_t column);
  int64_t named_label(const CsvField& field, size_t column);
  void number_names();
  void expand_categories(const std::string& path);
  void name_categories(const std::string& path, size_t column, std::vector<int64_t>& feature_of);
  [[noreturn]] void fail(const CsvField& field, size_t column, const std::string& expected,
                         const std::string& remedy = "") const;

  CsvRecords& records_;
  const CsvOptions& options_;
  CsvTable table_;
  CsvRoles roles_;
  std::vector<float> inputs_;
  int64_t num_inputs_ = 0;
  std::map<size_t, Categories> categories_;  // by column
  std::optional<bool> labels_are_names_;     // as the first one is
  std::vector<std::string> found_names_;     // in the order in which they came
  std::map<std::string, int64_t, std::less<>> label_of_name_;
};

}  // namespace lacuna
