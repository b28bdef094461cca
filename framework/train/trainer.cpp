// The loop; docs/training-step.md tells it line by line. What is written about it is in
// trainer_report.cpp, what is saved in trainer_state.cpp.
#include "lacuna/framework/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <utility>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/train/stop_signal.h"

namespace lacuna {

Trainer::Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress)
    : experiment_(experiment),
      folder_(std::move(folder)),
      progress_(progress),
      steps_per_epoch_(experiment.steps_per_epoch()),
      total_steps_(experiment.total_steps()) {}

RunEnd Trainer::run() {
  const StopSignal stop_signal;
  if (metrics_ == nullptr) open_metrics(0);
  experiment_.model->train();
  if (last_saved_step_ < 0) save();  // every run can be resumed from its beginning
  if (finished()) {
    log_info(std::string("nothing is left to train: ") +
             (stopped_early_ ? "early stopping has ended the run" : "the run has ended") +
             " at step " + std::to_string(step_));
  } else {
    std::error_code ignored;  // of an earlier, shorter run; the new one replaces it at the end
    std::filesystem::remove(folder_.summary_path(), ignored);
  }
  progress_.begin(step_);
  while (!finished() && StopSignal::received() == 0) {
    train_step();
    if (is_due(experiment_.train.checkpoint.every)) save();
    fault_point("step.between");
  }
  if (!finished()) return stop();
  if (last_evaluated_step_ != step_) evaluate_splits();  // only when the run was made shorter
  save();
  fault_point("run.before_summary");
  const RunEnd end = stopped_early_ ? RunEnd::StoppedEarly : RunEnd::Finished;
  write_summary(end);
  progress_.clear();
  return end;
}

void Trainer::train_step() {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<BackwardTrace> tracing = trace();
  const TrainingSums sums = run_batches(experiment_);
  if (!std::isfinite(sums.loss)) fail_diverged("the training loss", step_ + 1);
  fault_point("step.before_update");
  experiment_.optimizer->step();
  experiment_.optimizer->zero_grad();
  ++step_;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  train_seconds_ += seconds.count();
  window_seconds_ += seconds.count();
  if (step_watcher_) {
    progress_.clear();
    step_watcher_(sums.mean_loss());
  }
  after_step(sums);
}

// What backward of the first step does, where the log is to tell it.
std::unique_ptr<BackwardTrace> Trainer::trace() const {
  if (!experiment_.train.trace_autograd || step_ != 0) return nullptr;
  return std::make_unique<BackwardTrace>(
      [](const NodeRun& node) { log_info("backward  " + node.to_string()); });
}

void Trainer::after_step(const TrainingSums& step) {
  examples_ += step.examples;
  window_examples_ += step.examples;
  epoch_sums_ += step;
  window_sums_ += step;
  log_mask_updates();
  if (is_due(experiment_.train.log_every)) log_training();
  if (step_ % steps_per_epoch_ == 0) {
    last_epoch_loss_ = epoch_sums_.mean_loss();
    epoch_sums_ = {};
  }
  if (is_due(experiment_.train.eval_every) || step_ == total_steps_) evaluate_splits();
  progress_.tick(
      [&] { return progress_report(step, static_cast<double>(examples_) / train_seconds_); });
}

// After a signal.
RunEnd Trainer::stop() {
  progress_.clear();
  save();
  log_warning("stopped at step " + std::to_string(step_) + " of " + std::to_string(total_steps_) +
              "; continue with --resume --run-dir " + folder_.path());
  return StopSignal::received() == SIGINT ? RunEnd::Interrupted : RunEnd::Terminated;
}

void Trainer::fail_diverged(const std::string& what, int64_t step) const {
  throw Error(what + " is NaN or infinite at step " + std::to_string(step) +
              ": training has stopped, and the last checkpoint is of step " +
              std::to_string(last_saved_step_) +
              ". Resuming would repeat this; in a new run a smaller learning rate, a warmup or "
              "clip_norm may help");
}

}  // namespace lacuna
