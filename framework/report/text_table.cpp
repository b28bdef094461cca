// Tables of results as text, CSV and JSON.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {
namespace {

// Characters that a terminal shows: bytes that do not continue a UTF-8 sequence.
size_t shown_width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

bool looks_like_number(const std::string& text) {
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text == "-" ||
                           (text[0] == '-' && text.size() > 1));
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\r\n";
}

std::string or_dash(double value, const std::string& text) {
  return std::isnan(value) ? "-" : text;
}

std::string percent_or_dash(double fraction) {
  return or_dash(fraction, fmt::format("{:.2f} %", 100.0 * fraction));
}
std::string share(double value) { return or_dash(value, fmt::format("{:.4f}", value)); }
std::string number(double value) { return or_dash(value, rounded(value)); }
std::string whole(double value) { return or_dash(value, fmt::format("{:.0f}", value)); }

std::string memory_text(double bytes) {
  return or_dash(bytes, bytes < 1e6 ? fmt::format("{:.1f} kB", bytes / 1e3)
                                    : fmt::format("{:.1f} MB", bytes / 1e6));
}

std::string with_spread(const std::string& mean, double spread, const std::string& spread_text) {
  return std::isnan(spread) ? mean : mean + " ± " + spread_text;
}

// Leaves out columns in which no row has anything.
TextTable without_empty_columns(const TextTable& table) {
  TextTable result;
  result.rows.resize(table.rows.size());
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const bool is_empty = std::ranges::all_of(
        table.rows, [&](const auto& row) { return row[c].empty() || row[c] == "-"; });
    if (is_empty && !table.rows.empty()) continue;
    result.columns.push_back(table.columns[c]);
    for (size_t r = 0; r < table.rows.size(); ++r) result.rows[r].push_back(table.rows[r][c]);
  }
  return result;
}

struct Key {
  const char* name;
  double RunResult::*member;
};

constexpr Key kNumbers[] = {{"step", &RunResult::step},
                            {"accuracy", &RunResult::accuracy},
                            {"loss", &RunResult::loss},
                            {"best_accuracy", &RunResult::best_accuracy},
                            {"best_loss", &RunResult::best_loss},
                            {"best_step", &RunResult::best_step},
                            {"density", &RunResult::density},
                            {"nnz", &RunResult::nnz},
                            {"parameter_bytes", &RunResult::parameter_bytes},
                            {"train_seconds", &RunResult::train_seconds},
                            {"seed", &RunResult::seed},
                            {"r2", &RunResult::r2},
                            {"best_r2", &RunResult::best_r2},
                            {"mae", &RunResult::mae},
                            {"best_mae", &RunResult::best_mae},
                            {"rmse", &RunResult::rmse},
                            {"best_rmse", &RunResult::best_rmse},
                            {"perplexity", &RunResult::perplexity},
                            {"best_perplexity", &RunResult::best_perplexity},
                            {"bits_per_character", &RunResult::bits_per_character},
                            {"best_bits_per_character", &RunResult::best_bits_per_character},
                            {"examples_per_second", &RunResult::examples_per_second},
                            {"precision_at_1", &RunResult::precision_at_1},
                            {"best_precision_at_1", &RunResult::best_precision_at_1}};

// Whole numbers as integers.
Config exact(double value) {
  if (!std::isfinite(value)) return {};
  if (value == std::floor(value) && std::abs(value) < 0x1.0p53) {
    return Config(static_cast<int64_t>(value));
  }
  return Config(value);
}

}  // namespace

std::string TextTable::text() const {
  std::vector<size_t> widths;
  std::vector<bool> are_numbers;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = shown_width(columns[c]);
    bool is_number = !rows.empty();
    for (const auto& row : rows) {
      width = std::max(width, shown_width(row[c]));
      is_number = is_number && looks_like_number(row[c]);
    }
    widths.push_back(width);
    are_numbers.push_back(is_number);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;  // of one line, whatever a folder is called
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string space(widths[c] - shown_width(cells[c]), ' ');
      line += (c == 0 ? "" : "  ") + (are_numbers[c] ? space + cells[c] : cells[c] + space);
    }
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line(columns);
  for (const auto& row : rows) add_line(row);
  return text;
}

std::string TextTable::csv() const {
  std::string text = csv_line(columns);
  for (const auto& row : rows) text += csv_line(row);
  return text;
}

TextTable readable_table(const std::vector<RunResult>& results) {
  TextTable table{.columns = {"run",
                              "state",
                              "result of",
                              "accuracy",
                              "precision at 1",
                              "R²",
                              "MAE",
                              "RMSE",
                              "loss",
                              "perplexity",
                              "bits/character",
                              "best accuracy",
                              "best precision at 1",
                              "best R²",
                              "loss at best",
                              "bits/character at best",
                              "best step",
                              "steps",
                              "density",
                              "nonzeros",
                              "memory",
                              "examples/s",
                              "train time"},
                  .rows = {}};
  for (const RunResult& r : results) {
    table.rows.push_back(
        {r.label,
         r.state,
         r.split,
         percent_or_dash(r.accuracy),
         percent_or_dash(r.precision_at_1),
         share(r.r2),
         number(r.mae),
         number(r.rmse),
         number(r.loss),
         number(r.perplexity),
         number(r.bits_per_character),
         percent_or_dash(r.best_accuracy),
         percent_or_dash(r.best_precision_at_1),
         share(r.best_r2),
         number(r.best_loss),
         number(r.best_bits_per_character),
         whole(r.best_step),
         whole(r.step),
         percent_or_dash(r.density),
         whole(r.nnz),
         memory_text(r.parameter_bytes),
         or_dash(r.examples_per_second, fmt::format("{:.0f}", r.examples_per_second)),
         or_dash(r.train_seconds, fmt::format("{:.1f} s", r.train_seconds))});
  }
  return without_empty_columns(table);
}

TextTable exact_table(const std::vector<RunResult>& results) {
  TextTable table{.columns = {"run", "folder", "state", "split"}, .rows = {}};
  for (const Key& key : kNumbers) table.columns.emplace_back(key.name);
  table.columns.emplace_back("task");
  for (const RunResult& result : results) {
    auto& row = table.rows.emplace_back();
    row = {result.name, result.folder, result.state, result.split};
    for (const Key& key : kNumbers) {
      const Config value = exact(result.*key.member);
      row.push_back(value.is_null() ? "" : value.text());
    }
    row.push_back(result.task);
  }
  return table;
}

Config to_json(const std::vector<RunResult>& results) {
  Config list = Config::list();
  for (const RunResult& result : results) {
    Config row = Config::map({{"run", result.name},
                              {"folder", result.folder},
                              {"state", result.state},
                              {"split", result.split.empty() ? Config() : Config(result.split)}});
    for (const Key& key : kNumbers) row.set(key.name, exact(result.*key.member));
    row.set("task", result.task.empty() ? Config() : Config(result.task));
    list.push_back(row);
  }
  return list;
}

TextTable readable_table(const std::vector<SeedGroup>& groups) {
  TextTable table{.columns = {"setting", "runs", "accuracy", "precision at 1", "R²", "RMSE", "loss",
                              "perplexity", "bits/character", "density", "train time"},
                  .rows = {}};
  for (const SeedGroup& g : groups) {
    table.rows.push_back(
        {g.name.empty() ? "as configured" : g.name, std::to_string(g.results.size()),
         with_spread(percent_or_dash(g.mean_accuracy), g.spread_accuracy,
                     percent_or_dash(g.spread_accuracy)),
         with_spread(percent_or_dash(g.mean_precision), g.spread_precision,
                     percent_or_dash(g.spread_precision)),
         with_spread(share(g.mean_r2), g.spread_r2, share(g.spread_r2)),
         with_spread(number(g.mean_rmse), g.spread_rmse, rounded(g.spread_rmse)),
         with_spread(number(g.mean_loss), g.spread_loss, fmt::format("{:.2g}", g.spread_loss)),
         with_spread(number(g.mean_perplexity), g.spread_perplexity,
                     fmt::format("{:.2g}", g.spread_perplexity)),
         with_spread(number(g.mean_bits), g.spread_bits, fmt::format("{:.2g}", g.spread_bits)),
         percent_or_dash(g.mean_density),
         or_dash(g.mean_seconds, fmt::format("{:.1f} s", g.mean_seconds))});
  }
  return without_empty_columns(table);
}

}  // namespace lacuna
