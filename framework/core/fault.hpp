// Fault points: places where a test can have the process killed, to show that no run is lost.
#pragma once

#include <string_view>

namespace lacuna {

/// Kills this process with SIGKILL when the environment variable LACUNA_FAULT is "name:n" and this
/// is the n-th time (from 1) that the point `name` is passed; "name:n:stop" raises SIGTERM and
/// "name:n:interrupt" SIGINT instead. Otherwise does nothing. The points are listed in
/// docs/reference/checkpoint.md. *Cost:* one comparison when the variable is unset.
void fault_point(std::string_view name);

}  // namespace lacuna
