// Compares runs, the best first: `lacuna compare`.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Results and settings of runs, from the files of their folders: a map with `runs`, a list of
/// maps, the best first, and `differences` (docs/reference/commands.md). A folder that is not a run
/// stands for the runs below it. `by`: "step" or "seconds" compares the runs at the same number of
/// steps or seconds; empty: at their ends. *Errors:* DataError if a path does not exist or there is
/// no run; ConfigError on another `by`.
Config compare_runs(const std::vector<std::string>& runs, const std::string& by = "");

}  // namespace lacuna
