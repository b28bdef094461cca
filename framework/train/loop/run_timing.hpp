// How long a run takes, by steps of it that are timed before it begins.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// A run's time, in seconds.
struct RunTime {
  int64_t steps = 0, steps_per_epoch = 0;
  double step = 0.0;  ///< the mean over the run, changes of masks included
  double evaluations = 0.0, checkpoints = 0.0;

  double epoch() const { return step * static_cast<double>(steps_per_epoch); }
  double training() const { return step * static_cast<double>(steps); }
  double total() const { return training() + evaluations + checkpoints; }
};

/// Trains steps of an experiment for about the given seconds, evaluates a part of each split, and
/// writes a checkpoint into the folder of temporary files: what the run takes, by its plan. Where
/// masks change, the algorithm is set to some of the steps on which they do, so that these are
/// timed too, and with them the steps at other densities. The experiment has no further use.
/// Nothing, where a loss is not finite, or where training may not fit the memory that is available.
/// Collective: all processes measure as many steps; each gets its own times. *Errors:* those of a
/// training step.
std::optional<RunTime> measure_run(Experiment& experiment, double seconds);

/// The seconds of a step of an experiment, the mean over steps that take about so long in all.
/// Empty in the same cases as `measure_run`.
std::optional<double> measure_step(Experiment& experiment, double seconds);

}  // namespace lacuna
