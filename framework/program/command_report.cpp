// `lacuna report` and `lacuna compare`: runs looked at, as a page and as a table.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/actions/compared_runs.hpp"
#include "lacuna/framework/program/actions/config_defaults.hpp"
#include "lacuna/framework/program/actions/picture_size.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/differences.hpp"
#include "lacuna/framework/report/equal_budget.hpp"
#include "lacuna/framework/report/page.hpp"
#include "lacuna/framework/report/run_groups.hpp"
#include "lacuna/framework/report/run_search.hpp"
#include "lacuna/framework/report/run_table.hpp"
#include "lacuna/framework/report/tasks.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

void print(const std::string& text) { fmt::print("{}", clean_utf8(text)); }

size_t width_of(const std::string& text) {
  size_t width = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    width = std::max(width, end - begin);
    begin = end + 1;
  }
  return width;
}

// A line for each key, or for each run: what makes the narrower lines.
std::string differences_in_words(const std::vector<RunData>& runs,
                                 const std::vector<size_t>& places) {
  const std::vector<Difference> differences = config_differences(runs, places);
  if (differences.empty()) return "";
  TextTable by_key{.columns = {"differs in"}, .rows = {}};
  TextTable by_run = by_key;
  for (const size_t place : places) {
    by_key.columns.push_back(runs[place].label);
    by_run.rows.push_back({runs[place].label});
  }
  for (const auto& [key, values] : differences) {
    by_run.columns.push_back(key);
    auto& row = by_key.rows.emplace_back();
    row.push_back(key);
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string value = values[i].empty() ? "-" : values[i];
      row.push_back(value);
      by_run.rows[i].push_back(value);
    }
  }
  const std::string keys_below = by_key.text(), runs_below = by_run.text();
  return "\n" + (width_of(runs_below) < width_of(keys_below) ? runs_below : keys_below);
}

// For each task, of which there is one at most times, a table of results and one of differences.
void print_tables(const std::vector<RunData>& runs, const std::vector<RunResult>& results) {
  const std::vector<TaskResults> ranked = ranked_by_task(results);
  const std::vector<RunGroup> tasks = groups_of(tasks_of(results));  // in the same order
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (ranked.size() > 1) {
      const std::string& task = ranked[i].task;
      print((i == 0 ? "" : "\n") + (task.empty() ? std::string("other runs") : task) + "\n");
    }
    print(readable_table(ranked[i].results).text());
    if (tasks[i].runs.size() > 1) print(differences_in_words(runs, tasks[i].runs));
  }
}

// A file at --out is replaced only if it is a page too.
void require_page_or_nothing(const std::string& path) {
  std::error_code unknown;
  if (path == "-") throw ConfigError("--out: expected the name of a file");
  if (!std::filesystem::is_regular_file(path, unknown)) return;
  constexpr std::string_view kPage = "<!doctype html";
  std::string begin(kPage.size(), '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(stream.gcount()));
  std::ranges::transform(begin, begin.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (begin.empty() || begin == kPage) return;
  throw ConfigError("--out '" + path +
                    "' exists and is not a report; give another name or --overwrite");
}

}  // namespace

int run_report(const ReportCommand& command) {
  require_no_file_of_a_run("--out", behind_links(command.out));
  if (!command.overwrite) require_page_or_nothing(command.out);
  const FoundRuns found = find_runs(command.runs);
  for (const std::string& line : found.passed_over) log_warning(line);
  const std::vector<std::string>& folders = found.folders;
  require_place_of_page(command.out, folders);
  std::vector<RunData> runs = read_runs(folders, kMostPixels);
  find_defaults(runs);
  write_page(command.out, runs);
  fmt::print("{} is written: {} run{}\n", command.out, runs.size(), runs.size() == 1 ? "" : "s");
  return kDone;
}

int run_compare(const CompareCommand& command) {
  if (command.json && command.csv) {
    throw ConfigError("--json and --csv are both given; give one of them");
  }
  const std::optional<Budget> by = command.by.empty()     ? std::nullopt
                                   : command.by == "step" ? std::optional(Budget::Step)
                                                          : std::optional(Budget::Seconds);
  const ComparedRuns compared = compare(command.runs, by);
  for (const std::string& line : compared.remarks) log_warning(line);
  if (command.json) {
    print(to_config(compared).to_json_indented() + "\n");
  } else if (command.csv) {
    print(exact_table(all_results(ranked_by_task(compared.results))).csv());
  } else {
    if (!compared.budget.empty()) {
      print("results of evaluations " + compared.budget + " or before\n");
    }
    print_tables(compared.runs, compared.results);
  }
  return kDone;
}

}  // namespace lacuna
