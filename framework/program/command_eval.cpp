// `lacuna eval`: loss and accuracy of a checkpoint.
#include <cstdio>

#include "lacuna/framework/program/actions/evaluate_run.h"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"

namespace lacuna {

int run_eval(const EvalCommand& command) {
  const RunEvaluation evaluation =
      evaluate_run(command.checkpoint, {.last = command.last,
                                        .overrides = command.overrides,
                                        .data_changed = command.data_changed,
                                        .report_line = print_note});
  if (command.json) {
    Config report = Config::map({{"checkpoint", evaluation.checkpoint},
                                 {"step", evaluation.step},
                                 {"splits", evaluation.splits}});
    if (!evaluation.precisions.is_null()) report.set("precisions", evaluation.precisions);
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
  if (evaluation.precisions.is_null()) return kDone;
  for (const auto& [name, result] : evaluation.precisions.entries()) {
    std::fputs(precision_lines(name, result).c_str(), stdout);
  }
  if (evaluation.is_dequantized) {
    std::puts("float32: the run has int8 weights alone; these are their values times the scales");
  }
  return kDone;
}

}  // namespace lacuna
