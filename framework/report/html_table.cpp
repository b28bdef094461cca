#include "lacuna/framework/report/html_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "lacuna/framework/report/html.hpp"

namespace lacuna {
namespace {

bool is_number_column(const TextTable& table, size_t column) {
  return !table.rows.empty() && std::ranges::all_of(table.rows, [&](const auto& row) {
    const std::string& cell = row[column];
    return cell == "-" || (!cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) ||
                                             (cell[0] == '-' && cell.size() > 1)));
  });
}

}  // namespace

std::string html_table(const TextTable& table, const std::string& id,
                       const std::vector<RowMark>& marks) {
  std::vector<const char*> classes;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    classes.push_back(is_number_column(table, c) ? " class=\"number\"" : "");
  }
  std::string html = fmt::format("<div class=\"wide\"><table id=\"{}\"><thead><tr>", id);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    html += fmt::format("<th{}>{}</th>", classes[c], html_text(table.columns[c]));
  }
  html += "</tr></thead>\n<tbody>\n";
  const bool has_best = (id.starts_with("results") || id == "groups") && table.rows.size() > 1;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const RowMark mark = marks.empty() ? RowMark{} : marks[r];
    html += has_best && r == 0 ? "<tr class=\"best\"" : "<tr";
    html += mark.run < 0 ? ">" : fmt::format(" data-run=\"{}\">", mark.run);
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const bool is_name = c == 0 && !mark.title.empty();
      html += fmt::format("<td{}{}>{}{}</td>", classes[c],
                          is_name ? " title=\"" + html_text(mark.title) + "\"" : "",
                          c == 0 ? mark.swatch : "", html_text(table.rows[r][c]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace lacuna
