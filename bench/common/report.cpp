#include "common/report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "lacuna/framework/core/error.h"

namespace lacuna::bench {
namespace {

void write(const std::string& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  if (!stream) throw DataError(file + ": cannot be written");
}

}  // namespace

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Table::to_text() const {
  std::vector<size_t> widths(columns.size());
  const auto widen = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  };
  widen(columns);
  for (const auto& row : rows) widen(row);
  std::string text = "\n" + title + "\n";
  const auto append = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - cells[i].size(), ' ');
      text += i == 0 ? cells[i] + padding : "  " + padding + cells[i];
    }
    text += "\n";
  };
  append(columns);
  for (const auto& row : rows) append(row);
  return text;
}

std::string Table::to_markdown() const {
  std::string text = title + "\n\n";
  const auto append = [&](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) text += "| " + cell + " ";
    text += "|\n";
  };
  append(columns);
  for (size_t i = 0; i < columns.size(); ++i) text += i == 0 ? "|---" : "|--:";
  text += "|\n";
  for (const auto& row : rows) append(row);
  return text;
}

void Report::print(const Table& table) {
  std::printf("%s", table.to_text().c_str());
  std::fflush(stdout);
}

void Report::summarize(Table table) {
  print(table);
  summary_.push_back(std::move(table));
}

void Report::write_json(const std::string& file) const { write(file, rows_.to_json_indented()); }

void Report::write_markdown(const std::string& file, const std::string& command,
                            const std::string& setting) const {
  std::string text = "`" + command + "`, " + setting + ".\n";
  for (const Table& table : summary_) text += "\n" + table.to_markdown();
  write(file, text);
}

}  // namespace lacuna::bench
