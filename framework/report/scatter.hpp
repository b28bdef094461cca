// Results against what they cost: a point for each run.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/chart.hpp"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

/// A result of the runs of one task against density, nonzeros, memory and time.
struct ScatterSet {
  std::string title;     ///< "Accuracy", with the task where there are several
  bool is_main = false;  ///< what runs of the task are ranked by
  std::vector<Chart> charts = {};
};

/// Of each task with two results at least: accuracy, R² or bits per character, and the loss. Charts
/// in which all runs would have the same place are left out, and so are unknown values. `results`
/// has one for each run, in the runs' order; points have the styles of their groups where these
/// hold more than one run.
std::vector<ScatterSet> scatter_sets(const std::vector<RunResult>& results,
                                     const std::vector<RunGroup>& groups);

}  // namespace lacuna
