// How long a run takes, in words and as JSON, next to a dense run of the same network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/train/loop/dense_timing.hpp"
#include "lacuna/framework/train/loop/run_timing.hpp"

namespace lacuna {

/// "3.21 ms", "1.5 s", "2:05".
std::string time_in_words(double seconds);

/// "1.34 times faster than dense; 5 times less arithmetic": by the time of a step, and by training
/// FLOPs, which are left out where `less_arithmetic` is not above 1.
std::string speedup_in_words(double speedup, double less_arithmetic);

/// What `plan` prints of a run's time; `dense` where it is sparse.
std::vector<std::string> time_lines(const RunTime& time, const std::optional<DenseStep>& dense,
                                    double less_arithmetic);
/// The same as `plan --json` has it (docs/reference/commands.md).
Config to_config(const RunTime& time, const std::optional<DenseStep>& dense,
                 double less_arithmetic);

}  // namespace lacuna
