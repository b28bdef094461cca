// `lacuna quantize`: a trained model in int8, in a folder that `eval`, `predict` and `generate`
// run.
#include <cstdio>

#include "lacuna/framework/program/actions/quantize_run.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

int run_quantize(const QuantizeCommand& command) {
  QuantizeRequest request = command;
  request.report_line = print_note;
  const QuantizedRun quantized = quantize_run(request);
  if (command.json) {
    print_json(quantized.report);
    return kDone;
  }
  std::fputs(quantized.text.c_str(), stdout);
  std::printf("the quantized model is in %s\n", command.run_dir.c_str());
  return kDone;
}

}  // namespace lacuna
