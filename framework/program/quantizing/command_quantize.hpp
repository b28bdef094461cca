// The command `quantize`, once the command line is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lacuna {

struct QuantizeCommand {
  std::string checkpoint;
  std::string config_path;  ///< may be empty: the run's own section, or the defaults
  std::string run_dir;
  std::vector<std::string> overrides;  ///< of the section `quantize`
  std::optional<std::string> threads;  ///< short for --set train.threads=…
  bool last = false;  ///< of a run folder the last checkpoint, even where the best is kept
  bool json = false;
};

/// Returns the exit code 0 or throws an Error.
int run_quantize(const QuantizeCommand& command);

}  // namespace lacuna
