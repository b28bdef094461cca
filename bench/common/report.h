// What a benchmark hands out: tables to read, rows as JSON, tables as Markdown.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna::bench {

/// A number with so many digits behind the point.
std::string fixed(double value, int digits);

/// Cells of text below a title. The first column is aligned left, the others right.
struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};

  std::string to_text() const;
  std::string to_markdown() const;
};

/// Collects what a run measures.
class Report {
 public:
  /// A row of JSON: a map.
  void add_row(Config row) { rows_.push_back(std::move(row)); }
  /// Prints the table.
  static void print(const Table& table);
  /// Prints a table that sums the run up, and keeps it for the Markdown.
  void summarize(Table table);

  /// A list of the rows. *Errors:* DataError when the file cannot be written.
  void write_json(const std::string& file) const;
  /// The summarizing tables below `command`, by which they are reproduced, and `setting`, in which
  /// they were measured. *Errors:* as above.
  void write_markdown(const std::string& file, const std::string& command,
                      const std::string& setting) const;

 private:
  Config rows_ = Config::list();
  std::vector<Table> summary_;
};

}  // namespace lacuna::bench
