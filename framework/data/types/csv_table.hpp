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

/// The field without the spaces around it.
std::string_view trimmed_field(std::string_view text);
/// The whole field as a number, or nothing; infinite where it is beyond float32.
std::optional<double> parse_field(std::string_view text);

/// Reads records, whose positions errors name, into a CsvTable.
class TableBuilder {
 public:
  TableBuilder(CsvRecords& records, const CsvOptions& options)
      : records_(records), options_(options) {}

  /// `input_of`: for each field the input that it is, or −1. `label`: the field that is the label,
  /// or −1.
  void set_columns(std::vector<std::string> columns, std::vector<int64_t> input_of, int64_t label);
  /// *Errors:* DataError with the position.
  void add(const std::vector<CsvField>& fields);
  CsvTable finish();

 private:
  double number(const CsvField& field, size_t column) const;
  std::string remedy_for(const CsvField& field, size_t column) const;
  int64_t label(const CsvField& field, size_t column);
  int64_t named_label(const CsvField& field, size_t column);
  void number_names();
  [[noreturn]] void fail(const CsvField& field, size_t column, const std::string& expected,
                         const std::string& remedy = "") const;

  CsvRecords& records_;
  const CsvOptions& options_;
  CsvTable table_;
  std::vector<float> inputs_;
  std::vector<int64_t> input_of_;
  int64_t num_inputs_ = 0;
  int64_t label_ = -1;
  std::optional<bool> labels_are_names_;  // as the first one is
  std::vector<std::string> found_names_;  // in the order in which they came
  std::map<std::string, int64_t, std::less<>> label_of_name_;
};

}  // namespace lacuna
