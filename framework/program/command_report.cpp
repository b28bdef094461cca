// `lacuna report` and `lacuna compare`: runs looked at, as a page and as a table.
#include <fmt/core.h>

#include <cstdio>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/records/json_text.h"
#include "lacuna/framework/report/page.h"
#include "lacuna/framework/report/run_table.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {
namespace {

constexpr int64_t kMostPixels = 400;

void print(const std::string& text) { fmt::print("{}", clean_utf8(text)); }

Config comparison(const std::vector<RunData>& runs, const std::vector<RunResult>& results) {
  Config differences = Config::list();
  for (const Difference& difference : config_differences(runs)) {
    Config values = Config::map();
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto value = parse_json(difference.values[i]);
      values.set(runs[i].name, value ? *value : Config());
    }
    differences.push_back(Config::map({{"key", difference.key}, {"values", values}}));
  }
  return Config::map({{"runs", to_json(results)}, {"differences", differences}});
}

}  // namespace

int run_report(const ReportCommand& command) {
  require_no_file_of_a_run("--out", command.out);
  const std::vector<RunData> runs = read_runs(command.runs, kMostPixels);
  write_page(command.out, runs);
  fmt::print("{} is written: {} run{}\n", command.out, runs.size(), runs.size() == 1 ? "" : "s");
  return kDone;
}

int run_compare(const CompareCommand& command) {
  if (command.json && command.csv) {
    throw ConfigError("--json and --csv are both given; give one of them");
  }
  const std::vector<RunData> runs = read_runs(command.runs, 0);
  std::vector<RunResult> results;
  for (const RunData& run : runs) results.push_back(result_of(run));
  results = sorted_by_result(std::move(results));
  if (command.json) {
    print(comparison(runs, results).to_json_indented() + "\n");
  } else if (command.csv) {
    print(exact_table(results).csv());
  } else {
    print(readable_table(results).text());
    TextTable table{.columns = {"differs in"}, .rows = {}};
    for (const RunData& run : runs) table.columns.push_back(run.name);
    for (const Difference& difference : config_differences(runs)) {
      auto& row = table.rows.emplace_back();
      row.push_back(difference.key);
      for (const std::string& value : difference.values) row.push_back(value.empty() ? "-" : value);
    }
    if (!table.rows.empty()) print("\n" + table.text());
  }
  return kDone;
}

}  // namespace lacuna
