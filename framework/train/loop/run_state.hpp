// RunState: the progress of a run, as its checkpoints store it next to the experiment's state.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/train/early_stopping.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loop/training_step.hpp"

namespace lacuna {

/// The evaluation of a run that was the best so far: by the validation split, or, of a run without
/// one, by the test split.
struct BestEvaluation {
  int64_t step = 0;
  std::optional<Evaluation> test = {}, validation = {};
};

/// The counts and sums of a trainer since the beginning of a run.
struct RunState {
  int64_t step = 0;              ///< optimizer steps taken
  int64_t examples = 0;          ///< examples seen in them
  TrainingSums epoch = {};       ///< of the epoch so far
  TrainingSums window = {};      ///< since the last training event
  double last_epoch_loss = 0.0;  ///< mean over the last whole epoch
  EarlyStopping stopping = EarlyStopping();
  int64_t last_evaluated_step = -1;
  /// Whether the step's evaluation is still to be made: its checkpoint is saved first.
  bool evaluation_is_due = false;
  std::optional<Evaluation> test = {}, validation = {};  ///< at last_evaluated_step
  /// None before the first evaluation, and of a run that a version without it began.
  std::optional<BestEvaluation> best = {};
  /// Floating-point operations of all steps (nn/module_rows.h); unknown of a run that a version
  /// which did not count them began.
  std::optional<double> training_flops = 0.0;
  /// In training steps alone. A fact about the past, which differs between two runs that are
  /// otherwise the same: an attribute of a checkpoint (`Checkpoint::train_seconds`), not part of
  /// `state_dict()`.
  double train_seconds = 0.0;

  /// Counts an optimizer step; negative seconds count as none. a new epoch begins after its
  /// last one.
  void add_step(const TrainingSums& sums, double seconds, int64_t steps_per_epoch);

  StateDict state_dict() const;
  /// `answers`: those that an example asks for, at most (`LossFunction::answers`).
  /// *Errors:* CheckpointError when a value is missing or cannot be. (That a run of classification
  /// has an accuracy is for the caller to know: NaN is taken, as of regression.)
  void load_state_dict(const StateDict& state, int64_t answers = 1);
};

}  // namespace lacuna
