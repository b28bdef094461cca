// `lacuna prune`: a trained model pruned in one shot, as a run that training can go on from.
#include <cstdio>

#include "lacuna/framework/program/actions/prune_run.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_prune(const PruneCommand& command) {
  PruneRequest request = command;
  request.report_line = print_note;
  const PrunedRun pruned = prune_run(request);
  if (command.json) {
    print_json(pruned.report);
    return kDone;
  }
  std::fputs(pruned.text.c_str(), stdout);
  std::printf("the pruned model is in %s\n", command.run_dir.c_str());
  return kDone;
}

}  // namespace lacuna
