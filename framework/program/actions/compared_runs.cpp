#include "lacuna/framework/program/actions/compared_runs.hpp"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/program/actions/compare_runs.h"
#include "lacuna/framework/program/actions/config_defaults.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/differences.hpp"
#include "lacuna/framework/report/run_search.hpp"
#include "lacuna/framework/report/tasks.hpp"

namespace lacuna {

ComparedRuns compare(const std::vector<std::string>& given, std::optional<Budget> by) {
  FoundRuns found = find_runs(given);
  ComparedRuns compared{
      .runs = read_runs(found.folders, 0), .results = {}, .remarks = std::move(found.passed_over)};
  if (by) {
    EqualBudget equal = cut_to_equal_budget(std::move(compared.runs), *by);
    compared.budget = equal.in_words(*by);
    compared.runs = std::move(equal.runs);
  }
  find_defaults(compared.runs);
  for (const RunData& run : compared.runs) {
    for (const std::string& remark : run.remarks) {
      compared.remarks.push_back(run.name + ": " + remark);
    }
  }
  for (const RunData& run : compared.runs) compared.results.push_back(result_of(run));
  return compared;
}

Config to_config(const ComparedRuns& compared) {
  Config differences = Config::list();
  for (const Difference& difference : config_differences(compared.runs)) {
    Config values = Config::map();
    for (size_t i = 0; i < compared.runs.size(); ++i) {
      const auto value = parse_json(difference.values[i]);
      values.set(compared.runs[i].name, value ? *value : Config());
    }
    differences.push_back(Config::map({{"key", difference.key}, {"values", values}}));
  }
  Config report = Config::map({{"runs", to_json(all_results(ranked_by_task(compared.results)))},
                               {"differences", differences}});
  if (!compared.budget.empty()) report.set("compared", compared.budget);
  return report;
}

Config compare_runs(const std::vector<std::string>& runs, const std::string& by) {
  if (by.empty()) return to_config(compare(runs, std::nullopt));
  if (by == "step") return to_config(compare(runs, Budget::Step));
  if (by == "seconds") return to_config(compare(runs, Budget::Seconds));
  throw ConfigError("runs are compared by 'step' or by 'seconds', found '" + by + "'");
}

}  // namespace lacuna
