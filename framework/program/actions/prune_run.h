// Prunes a trained model in one shot, into a run that training can continue: `lacuna prune`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

struct PruneRequest {
  std::string checkpoint;        ///< a run folder, a checkpoint, or another tool's weights
  std::string config_path = {};  ///< may be empty with `config`, `sparsity` or overrides
  Config config = {};            ///< the same as a tree; used if there is no path
  std::optional<std::string> sparsity = {};  ///< short for the override sparsity.sparsity=…
  std::optional<std::string> method = {};    ///< short for sparsity.algorithm=…
  std::string run_dir;                       ///< the folder of the pruned run
  std::vector<std::string> overrides = {};   ///< "key=value", of the given configuration
  std::optional<std::string> threads = {};   ///< short for train.threads=…
  bool last = false;  ///< the last checkpoint of a run folder, even if the best is kept
  ReportLine report_line = nullptr;
};

struct PrunedRun {
  Config report;     ///< as prune.json in the run folder has it (docs/reference/commands.md)
  std::string text;  ///< the same as tables
};

/// The names of the methods: "magnitude", "wanda", "sparsegpt" and "admm".
const std::vector<std::string>& prune_methods();

/// Prunes the model and makes a run folder of step 0 for it, which is written completely or not at
/// all. Sections that the request does not give are those of the run (docs/guides/pruning.md).
/// *Effect:* sets the process's threads and layout fallback to `train.threads` and
/// `train.layout_fallback`; logs also to the new folder. *Errors:* ConfigError, DataError,
/// CheckpointError, MemoryError; StateError if `run_dir` is in use. *Cost:* a pass over the
/// calibration examples for each layer, and two evaluations.
PrunedRun prune_run(const PruneRequest& request);

}  // namespace lacuna
