// The clock that steps and evaluations are timed by.
#pragma once

#include <algorithm>
#include <chrono>

namespace lacuna {

using StepClock = std::chrono::steady_clock;

/// Never negative: some virtual machines' steady clocks run backwards.
inline double seconds_since(StepClock::time_point start) {
  return std::max(0.0, std::chrono::duration<double>(StepClock::now() - start).count());
}

}  // namespace lacuna
