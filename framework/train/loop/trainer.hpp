// Trainer: the training loop with its evaluations, metrics, checkpoints and stops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loop/confusion_recorder.hpp"
#include "lacuna/framework/train/loop/run_state.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_end.h"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

struct DenseStep;
class RunReporter;

/// Runs an experiment in a run folder, from its beginning or from a checkpoint.
class Trainer {
 public:
  Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Continues from a checkpoint of this run; what metrics.jsonl holds beyond it is cut off.
  /// *Errors:* CheckpointError when it is of another model, or of a run with other data or another
  /// teacher and `changed` refuses these; ConfigError when the run is to end before it.
  void resume(const CheckpointFile& file, ChangedOrigins changed = ChangedOrigins::Refused);

  /// Writes the checkpoint of step 0, so that the run can be evaluated and resumed before it has
  /// trained. *Errors:* as `run`.
  void save_beginning();

  /// Trains to the end, writing checkpoints (one of step 0 before the first step), metrics and, at
  /// the end, summary.json. A run that early stopping has ended leaves the model as it was best,
  /// and its last checkpoint as training was. After SIGINT or SIGTERM it writes a checkpoint and
  /// returns. *Errors:* Error naming the step when a loss or a parameter is NaN or infinite;
  /// StateError when a file cannot be written. The last checkpoint stays good.
  RunEnd run();

  /// Called after each optimizer step, outside the time that is measured, with the step's mean
  /// loss. Null: nobody.
  void watch_steps(std::function<void(double loss)> watcher) { step_watcher_ = std::move(watcher); }

  /// Called with each event that is written to metrics.jsonl. Null: nobody.
  void watch_events(std::function<void(const Config& event)> watcher);
  /// For a watcher of steps: no other step is taken in `run`, which writes a checkpoint and returns
  /// `Stopped`. Where this was the last step, the run finishes. Of several processes one is enough.
  void stop() { is_asked_to_stop_ = true; }

  int64_t step() const { return state_.step; }
  /// What summary.json holds. *Requires* a run that has ended by itself.
  const Config& summary() const;
  int64_t total_steps() const { return experiment_.total_steps(); }

 private:
  bool finished() const { return step() >= total_steps() || state_.stopping.has_stopped(); }
  bool is_due(const Period& period) const;

  void begin();
  std::string how_it_ended() const;
  void train_step();
  void update();
  bool is_traced() const;
  void after_step(const TrainingSums& sums);
  void try_evaluations();
  void evaluate_splits();
  void write_sample();
  Evaluation evaluate_split(const char* split, const Dataset& data);
  bool judge(const Evaluation& result);
  void save();
  void restore_best();
  Checkpoint checkpoint() const;
  bool must_stop();
  RunEnd finish();
  std::optional<DenseStep> time_dense_step() const;
  RunEnd interrupt();

  void require_finite_values() const;
  [[noreturn]] void fail_diverged(const std::string& what, int64_t step) const;

  Experiment& experiment_;
  RunFolder folder_;
  RunState state_;
  std::unique_ptr<RunReporter> reporter_;
  ConfusionRecorder confusion_{experiment_};
  std::function<void(double loss)> step_watcher_;
  int64_t last_saved_step_ = -1;         // by this process, or the one it resumed from
  bool has_unsaved_evaluation_ = false;  // since the last checkpoint
  bool has_trained_ = false;             // in this process
  bool is_asked_to_stop_ = false;
  int signal_ = 0;  // that ends the run, whichever process it came to
};

}  // namespace lacuna
