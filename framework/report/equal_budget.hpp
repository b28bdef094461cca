// Runs as they were when each had taken as many steps, or as much time.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// What runs are compared by.
enum class Budget {
  Step,
  Seconds,  ///< of training steps, without evaluations
};

/// Runs up to the largest number of steps, or seconds, that all of them have an evaluation (or, of
/// runs without any, an event of training) for.
struct EqualBudget {
  std::vector<RunData> runs;
  double most = 0.0;  ///< steps or seconds

  /// "after 1,570 steps", "after 12.5 s of training".
  std::string in_words(Budget by) const;
};

/// Leaves out what came later of each run. A first evaluation stays; if it came later, a remark of
/// the run says so. *Errors:* DataError that names a run without any result, or, by seconds,
/// without times.
EqualBudget cut_to_equal_budget(std::vector<RunData> runs, Budget by);

}  // namespace lacuna
