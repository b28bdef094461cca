// Runs side by side, for a table or as records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/report/equal_budget.hpp"
#include "lacuna/framework/report/run_data.hpp"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

struct ComparedRuns {
  std::vector<RunData> runs;
  std::vector<RunResult> results;         ///< of each run, in the same order
  std::vector<std::string> remarks = {};  ///< what was skipped, or could not be read
  std::string budget = {};                ///< in words, if runs are compared by one
};

/// Reads the runs that the paths stand for (`find_runs`); `by`: as each was when all had as many
/// steps or seconds. *Errors:* DataError.
ComparedRuns compare(const std::vector<std::string>& given, std::optional<Budget> by);

/// As `lacuna compare --json` prints it (docs/reference/commands.md).
Config to_config(const ComparedRuns& compared);

}  // namespace lacuna
