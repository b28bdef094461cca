// `lacuna plan`: what the sparsity algorithm will do, counted before any training.
#include <cstdio>
#include <string>

#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/actions/plan_run.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_plan(const PlanCommand& command) {
  constexpr double kSeconds = 1.5;
  log_to_console(LogLevel::Info);  // that layouts are being measured
  const RunPlan plan = plan_run({.path = command.config_path, .overrides = command.overrides},
                                {.seconds = kSeconds, .report_line = print_note});
  if (command.json) {
    print_json(plan.report);
  } else {
    std::fputs(plan.text.c_str(), stdout);
  }
  return kDone;
}

}  // namespace lacuna
