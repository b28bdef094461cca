// What runs were trained to do: only runs of the same task can be ranked.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {

/// The run's data and what is judged, "mnist, classification". Data in files counts by the last
/// name of its path, so that the same file is the same on another machine. Without a configuration
/// or an evaluation, what is known of these; "" where nothing is.
std::string task_of(const RunData& run);

/// The task of each: its own, or where a run was not evaluated yet that of others with its data.
std::vector<std::string> tasks_of(const std::vector<RunResult>& results);

/// The runs of one task, the best first.
struct TaskResults {
  std::string task;
  std::vector<RunResult> results;
};

/// One for each task, in the order in which the first run of each comes.
std::vector<TaskResults> ranked_by_task(const std::vector<RunResult>& results);
/// All of these in one list.
std::vector<RunResult> all_results(const std::vector<TaskResults>& tasks);

}  // namespace lacuna
