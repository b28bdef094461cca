// `lacuna sweep`: a run for each combination of values and each seed.
#include <fmt/core.h>

#include <csignal>

#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/actions/sweep_runs.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_sweep(const SweepCommand& command) {
  log_to_console(LogLevel::Info);
  const SweepResult result = sweep_runs(command);
  if (result.signal != 0) return result.signal == SIGINT ? kInterrupted : kTerminated;
  if (!result.runs.empty()) {
    fmt::print("{}\nThe runs are in {}, the report is {}\n", result.text, command.run_dir,
               result.page);
  }
  return result.failed == 0 ? kDone : kRunError;
}

}  // namespace lacuna
