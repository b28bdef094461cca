// Trainer: the training loop with its evaluations, metrics, checkpoints and stops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/progress.h"
#include "lacuna/framework/train/run_folder.h"
#include "lacuna/framework/train/training_step.h"

namespace lacuna {

/// How a run ended.
enum class RunEnd { Finished, StoppedEarly, Interrupted, Terminated };

/// Runs an experiment in a run folder, from its beginning or from a checkpoint.
class Trainer {
 public:
  Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress);

  /// Continues from a checkpoint of this run; what metrics.jsonl holds beyond it is cut off.
  /// *Errors:* CheckpointError when it is of another model, ConfigError when the run is to end
  /// before it.
  void resume(const std::string& checkpoint_path);

  /// Trains to the end, writing checkpoints (one of step 0 before the first step), metrics and, at
  /// the end, summary.json. After SIGINT or SIGTERM it writes a checkpoint and returns.
  /// *Errors:* Error naming the step when a loss or a parameter is NaN or infinite; StateError when
  /// a file cannot be written. The last checkpoint stays good.
  RunEnd run();

  /// Called after each optimizer step, outside the time that is measured, with the step's mean
  /// loss. Null: nobody.
  void watch_steps(std::function<void(double loss)> watcher) { step_watcher_ = std::move(watcher); }

  int64_t step() const { return step_; }
  int64_t total_steps() const { return total_steps_; }

 private:
  bool finished() const { return step_ >= total_steps_ || stopped_early_; }
  bool is_due(const Period& period) const { return step_ % period.in_steps(steps_per_epoch_) == 0; }

  // trainer.cpp: the loop.
  void train_step();
  std::unique_ptr<BackwardTrace> trace() const;
  void after_step(const TrainingSums& step);
  RunEnd stop();
  [[noreturn]] void fail_diverged(const std::string& what, int64_t step) const;

  // trainer_report.cpp: what is written about it.
  Config event(const char* split, double loss, double accuracy) const;
  void log_training();
  void log_mask_updates();
  void evaluate_splits();
  Evaluation evaluate_split(const char* split, const Dataset& data);
  bool judge(const Evaluation& validation);
  ProgressReport progress_report(const TrainingSums& sums, double rate) const;
  double epochs_done() const;
  void write_summary(RunEnd end);

  // trainer_state.cpp: what is saved.
  void save();
  void require_finite_parameters() const;
  Checkpoint checkpoint() const;
  StateDict state_dict() const;
  StateDict own_state() const;
  void load_state_dict(const StateDict& state);
  void load_own_state(const StateDict& state);
  void open_metrics(int64_t bytes);

  Experiment& experiment_;
  RunFolder folder_;
  std::unique_ptr<JsonLines> metrics_;
  Progress progress_;
  std::function<void(double loss)> step_watcher_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;

  // What a checkpoint holds besides model, optimizer, sparsity and loader.
  int64_t step_ = 0;
  int64_t examples_ = 0;          // seen so far
  TrainingSums epoch_sums_;       // of the epoch so far
  TrainingSums window_sums_;      // since the last training event
  double last_epoch_loss_ = 0.0;  // mean over the last whole epoch
  // Scores are validation accuracies, or −losses.
  std::optional<double> best_score_;
  std::optional<double> score_to_beat_;  // by early stopping's min_delta
  int64_t evaluations_without_gain_ = 0;
  bool stopped_early_ = false;
  int64_t last_evaluated_step_ = -1;
  std::optional<Evaluation> test_;  // as of last_evaluated_step_
  double train_seconds_ = 0.0;      // in training steps alone

  // Of this process.
  double window_seconds_ = 0.0;
  int64_t window_examples_ = 0;
  int64_t last_saved_step_ = -1;
};

}  // namespace lacuna
