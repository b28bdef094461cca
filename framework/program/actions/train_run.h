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
  /// maps (docs/reference/run-folder.md); empty until there is one. The step's own events come
  /// after it, and so are there at the next one.
  Config metrics;
  /// Whether `metrics` is another than at the step before.
  bool has_new_metrics = false;
};

struct TrainRequest {
  /// With `resume` it may be empty; what it gives must then be the run's.
  GivenConfig config = {};
  /// Absent: the configuration's `run_dir`, else runs/NAME of the configuration's file.
  std::optional<std::string> run_dir = {};
  bool resume = false;  ///< continues the run in the folder, from its newest checkpoint
  /// With `resume`: the optimizer may be changed, which is recorded, and data or a teacher that
  /// have changed are taken as they are.
  bool change = false;
  /// Called before the first step, once everything is built; an exception ends the run.
  std::function<void()> on_begin = nullptr;
  /// Called after each step, outside the time that is measured. false: the run writes a checkpoint
  /// and ends. What it throws ends the run without one.
  std::function<bool(const TrainedStep& step)> on_step = nullptr;
};

struct TrainedRun {
  std::string run_dir;
  RunEnd end = RunEnd::Finished;
  int64_t step = 0;  ///< optimizer steps that the run has taken
  Config summary;    ///< as summary.json has it; null of a run that can go on
};

/// Trains in a run folder until the run's end, a signal, or until `on_step` stops it; then the
/// folder is as `lacuna train` leaves it. One training at a time in a process, because signals and
/// the log belong to all of it. While it trains, SIGINT, SIGTERM and SIGHUP end it after a
/// checkpoint; a second SIGINT or SIGTERM ends the process at once. *Effect:* `train.threads` and
/// `train.layout_fallback` become those of the process; the log goes to the run's log.txt too, and
/// to the console as far as `log_to_console` allows. *Errors:* ConfigError, DataError,
/// CheckpointError, MemoryError; StateError when the folder is in use or another training is
/// running; Error when training diverges.
TrainedRun train_run(const TrainRequest& request);

}  // namespace lacuna
