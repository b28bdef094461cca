// PreparedRun: all that a training needs, built and at its first step; a new run, or one that goes
// on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/program/actions/given_config.h"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

struct RunToPrepare {
  GivenConfig config = {};
  std::optional<std::string> run_dir = {};    ///< absent: the configuration's
  std::optional<std::string> init_from = {};  ///< what model.init_from names; not with `resume`
  bool resume = false;
  bool change = false;                   ///< as TrainRequest::change
  std::optional<LogLevel> console = {};  ///< absent: as it is
  ProgressStyle progress = ProgressStyle::Lines;
  std::shared_ptr<Communicator> job = nullptr;
  /// Called when all is built, for a new run before its folder is made.
  std::function<void(const Experiment&, const std::optional<CheckpointFile>&)> when_built = nullptr;
};

struct PreparedRun {
  RunFolder folder;
  std::unique_ptr<Experiment> experiment;
  std::unique_ptr<Trainer> trainer;
};

/// Builds the experiment, makes or opens its folder, begins its log, and brings the trainer to the
/// step that is next. The log has the run's header. *Errors:* those of `train_run`.
PreparedRun prepare_run(const RunToPrepare& wanted);

}  // namespace lacuna
