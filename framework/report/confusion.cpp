#include "lacuna/framework/report/confusion.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "lacuna/framework/report/html.hpp"
#include "lacuna/framework/report/html_table.hpp"

namespace lacuna {
namespace {

using Counts = std::vector<std::vector<int64_t>>;

// Nothing where it is no square matrix of counts.
std::optional<Counts> counts_of(const Config& matrix) {
  if (!matrix.is_list()) return std::nullopt;
  Counts counts;
  const std::vector<Config> rows = matrix.items();
  for (const Config& row : rows) {
    if (!row.is_list() || row.items().size() != rows.size()) return std::nullopt;
    std::vector<int64_t>& numbers = counts.emplace_back();
    for (const Config& count : row.items()) {
      if (!count.is_number() || count.as<double>() < 0.0) return std::nullopt;
      numbers.push_back(static_cast<int64_t>(count.as<double>()));
    }
  }
  return counts.empty() ? std::nullopt : std::optional(counts);
}

std::vector<std::string> names_of(const Config& classes, size_t count) {
  std::vector<std::string> names;
  if (classes.is_list() && classes.items().size() == count) {
    for (const Config& name : classes.items()) names.push_back(name.text());
  }
  for (size_t i = names.size(); i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

int64_t sum_of(const std::vector<int64_t>& row) {
  int64_t sum = 0;
  for (const int64_t count : row) sum += count;
  return sum;
}

std::string matrix_of(const Counts& counts, const std::vector<std::string>& names,
                      const std::string& id) {
  std::string html = fmt::format(
      "<div class=\"wide\"><table id=\"{}\" class=\"confusion\"><thead><tr><th>true \\ "
      "predicted</th>",
      id);
  for (const std::string& name : names) html += "<th>" + html_text(name) + "</th>";
  html += "<th>right</th></tr></thead>\n<tbody>\n";
  for (size_t row = 0; row < counts.size(); ++row) {
    const int64_t all = sum_of(counts[row]);
    html += "<tr><th>" + html_text(names[row]) + "</th>";
    for (size_t column = 0; column < counts.size(); ++column) {
      const int64_t count = counts[row][column];
      const double share = all == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(all);
      html += fmt::format("<td class=\"{}\" style=\"--part:{:.3g}\">{}</td>",
                          row == column ? "right" : "wrong", share,
                          count == 0 ? "" : std::to_string(count));
    }
    html +=
        all == 0
            ? "<td>-</td></tr>\n"
            : fmt::format("<td>{:.1f} %</td></tr>\n",
                          100.0 * static_cast<double>(counts[row][row]) / static_cast<double>(all));
  }
  return html + "</tbody></table></div>\n";
}

std::string pairs_of(const Counts& counts, const std::vector<std::string>& names,
                     const std::string& id) {
  constexpr size_t kMostPairs = 20;
  std::vector<std::tuple<int64_t, size_t, size_t>> pairs;
  for (size_t row = 0; row < counts.size(); ++row) {
    for (size_t column = 0; column < counts.size(); ++column) {
      if (row != column && counts[row][column] > 0) {
        pairs.emplace_back(-counts[row][column], row, column);
      }
    }
  }
  std::ranges::sort(pairs);
  if (pairs.size() > kMostPairs) pairs.resize(kMostPairs);
  TextTable table{.columns = {"true class", "predicted", "examples", "of the class"}, .rows = {}};
  for (const auto& [negative, row, column] : pairs) {
    const double share = static_cast<double>(-negative) / static_cast<double>(sum_of(counts[row]));
    table.rows.push_back({names[row], names[column], std::to_string(-negative),
                          fmt::format("{:.1f} %", 100.0 * share)});
  }
  return fmt::format(
             "<p class=\"note\">The pairs of its {} classes that are confused most often.</p>\n",
             names.size()) +
         html_table(table, id);
}

}  // namespace

std::string html_confusion(const Config& confusion, const std::string& id) {
  constexpr size_t kMostClasses = 30;
  if (!confusion.is_map()) return "";
  const auto counts = counts_of(confusion.get("counts"));
  if (!counts) return "";
  const std::vector<std::string> names = names_of(confusion.get("classes"), counts->size());
  const Config split = confusion.get("split"), step = confusion.get("step");
  const std::string about = split.is_scalar() && step.is_number()
                                ? "<p class=\"note\">The " + html_text(split.text()) +
                                      " split at step " + html_text(step.text()) +
                                      ": rows are true classes, columns predicted ones.</p>\n"
                                : "";
  return about + (counts->size() <= kMostClasses ? matrix_of(*counts, names, id)
                                                 : pairs_of(*counts, names, id));
}

}  // namespace lacuna
