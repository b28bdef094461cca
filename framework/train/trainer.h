// Trainer: the training loop with its evaluations, metrics, checkpoints and stops.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/progress.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {

/// How a run ended.
enum class RunEnd { Finished, StoppedEarly, Interrupted, Terminated };

/// Sums over the examples of an epoch or of a log window.
struct TrainingSums {
  double loss = 0.0;
  int64_t correct = 0;
  int64_t examples = 0;

  double mean_loss() const;
  double accuracy() const;
};

/// Runs an experiment in a run folder, from its beginning or from a checkpoint. The loop is written
/// in the order of docs/training-step.md.
class Trainer {
 public:
  Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress);

  /// Continues from a checkpoint of this run. *Errors:* CheckpointError, before anything changed
  /// but the experiment.
  void resume(const std::string& checkpoint_path);

  /// Trains to the end, writing checkpoints (one of step 0 before the first step), metrics and, at
  /// the end, summary.json. After SIGINT or SIGTERM it writes a checkpoint and returns.
  /// *Errors:* Error naming the step when the loss is NaN or infinite; StateError when a file
  /// cannot be written. The last checkpoint stays good.
  RunEnd run();

  int64_t step() const { return step_; }
  int64_t total_steps() const { return total_steps_; }

 private:
  struct StepResult {
    double loss = 0.0;
    int64_t correct = 0;
    int64_t examples = 0;
  };

  bool finished() const { return step_ >= total_steps_ || stopped_early_; }
  void train_step();
  std::vector<Batch> next_batches();
  StepResult run_batches(const std::vector<Batch>& batches);
  void after_step(const StepResult& result);
  void end_epoch();

  void log_training();
  void log_mask_updates();
  void evaluate_splits();
  void judge(const Evaluation& validation);
  Config metric(const char* split) const;
  double epochs_done() const;

  void save();
  Checkpoint checkpoint() const;
  StateDict state_dict() const;
  StateDict input_format() const;
  void load_state_dict(const StateDict& state);
  void write_summary(RunEnd end);

  Experiment& experiment_;
  RunFolder folder_;
  Loader loader_;
  std::unique_ptr<JsonLines> metrics_;
  Progress progress_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;

  // What a checkpoint holds besides model, optimizer, sparsity and loader.
  int64_t step_ = 0;
  int64_t examples_ = 0;          // seen so far
  TrainingSums epoch_sums_;       // of the epoch so far
  TrainingSums window_sums_;      // since the last line of metrics
  double last_epoch_loss_ = 0.0;  // mean over the last whole epoch
  std::optional<double> best_;    // validation accuracy, or −loss
  int64_t evaluations_since_best_ = 0;
  bool stopped_early_ = false;
  double train_seconds_ = 0.0;  // in training steps alone
  double window_seconds_ = 0.0;

  int64_t last_saved_step_ = -1;
  int64_t last_evaluated_step_ = -1;
  std::optional<Evaluation> test_;
};

}  // namespace lacuna
