// `lacuna shrink`: a trained model made smaller, as a run that training can go on from.
#include <cstdio>

#include "lacuna/framework/program/actions/shrink_run.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_shrink(const ShrinkCommand& command) {
  ShrinkRequest request = command;
  request.report_line = print_note;
  const ShrunkRun shrunk = shrink_run(request);
  if (command.json) {
    print_json(shrunk.report);
    return kDone;
  }
  std::fputs(shrunk.text.c_str(), stdout);
  std::printf("the smaller model is in %s\n", command.run_dir.c_str());
  return kDone;
}

}  // namespace lacuna
