// Trains a configuration, or continues a run: `lacuna train`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"
#include "lacuna/framework/train/runs/run_end.h"

namespace lacuna {

/// An optimizer step that has been taken.
struct TrainedStep {
  int64_t step = 0;   ///< counted from 1
  double loss = 0.0;  ///< the mean of its examples
  /// The last event of metrics.jsonl of each split ("train", "validation", "test"), as a map of
  /// maps (docs/reference/run-folder.md); empty until there is one. The events of this step are
  /// written after the call, so the next call sees them.
  Config metrics;
  /// Whether `metrics` has changed since the previous step.
  bool has_new_metrics = false;
};

struct TrainRequest {
  /// With `resume` it may be empty; given values must equal those of the run.
  GivenConfig config = {};
  /// Absent: the configuration's `run_dir`, else runs/NAME of the configuration's file.
  std::optional<std::string> run_dir = {};
  bool resume = false;  ///< continues the run in the folder, from its newest checkpoint
  /// With `resume`: changes of the optimizer are accepted and recorded, and changed data or a
  /// changed teacher is accepted.
  bool change = false;
  /// Called before the first step, once everything is built; an exception ends the run.
  std::function<void()> on_begin = nullptr;
  /// Called after each step, outside the time that is measured. false: the run writes a checkpoint
  /// and ends. An exception ends the run without one.
  std::function<bool(const TrainedStep& step)> on_step = nullptr;
};

struct TrainedRun {
  std::string run_dir;
  RunEnd end = RunEnd::Finished;
  int64_t step = 0;  ///< optimizer steps that the run has taken
  Config summary;    ///< as in summary.json; null if the run can continue
};

/// Trains in a run folder until the run's end, a signal, or until `on_step` stops it; then the
/// folder is as `lacuna train` leaves it. Only one training can run in a process, because the
/// process shares signals and the log. While it trains, SIGINT, SIGTERM and SIGHUP end it after a
/// checkpoint; a second SIGINT or SIGTERM ends the process at once. *Effect:* sets the process's
/// threads and layout fallback to `train.threads` and `train.layout_fallback`; logs to the run's
/// log.txt, and to the console as `log_to_console` allows. *Errors:* ConfigError, DataError,
/// CheckpointError, MemoryError; StateError if the folder is in use or another training is running;
/// Error if training diverges.
TrainedRun train_run(const TrainRequest& request);

}  // namespace lacuna
