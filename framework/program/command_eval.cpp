// `lacuna eval`: loss and accuracy of a checkpoint.
#include <cstdio>

#include "lacuna/framework/program/actions/evaluate_run.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"

namespace lacuna {

int run_eval(const EvalCommand& command) {
  const RunEvaluation evaluation =
      evaluate_run(command.checkpoint, {.last = command.last,
                                        .overrides = command.overrides,
                                        .data_changed = command.data_changed,
                                        .tell = print_note});
  if (command.json) {
    Config report = Config::map({{"checkpoint", evaluation.checkpoint},
                                 {"step", evaluation.step},
                                 {"splits", evaluation.splits}});
    if (!evaluation.changes.empty()) {
      report.set("data_changed", Config::from_value(evaluation.changes));
    }
    print_json(report);
    return kDone;
  }
  for (const Config& entry : evaluation.splits.items()) {
    std::printf("%s, step %lld)\n", describe_evaluation(entry).c_str(),
                static_cast<long long>(evaluation.step));
  }
  return kDone;
}

}  // namespace lacuna
