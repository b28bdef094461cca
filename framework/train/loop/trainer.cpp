// The training loop; docs/development/training-step.md explains it line by line.
#include "lacuna/framework/train/loop/trainer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.hpp"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/loop/clock.hpp"
#include "lacuna/framework/train/loop/dense_timing.hpp"
#include "lacuna/framework/train/loop/run_reporter.hpp"
#include "lacuna/framework/train/loop/stop_signal.hpp"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/runs/best_checkpoint.hpp"
#include "lacuna/framework/train/weights/weight_comparison.hpp"

namespace lacuna {
namespace {

constexpr int kAskedToStop = 1000;  // beyond the numbers of signals

// For a run that is resumed with another arithmetic than that of its checkpoint.
std::string arithmetic_notice(std::optional<int64_t> saved) {
  const std::string has =
      saved ? fmt::format("arithmetic revision {}", *saved) : "no arithmetic revision";
  return fmt::format(
      "the checkpoint has {}, but this version of lacuna has revision {}: last digits may differ "
      "from those of a run that never stopped",
      has, kArithmeticRevision);
}

// The step from which on numbers of nonzeros stay as planned, and quantization, which begins before
// a step and not after one, is part of the model; 0 if there is neither.
int64_t last_planned_change(const Experiment& experiment) {
  const int64_t before =
      experiment.quantization == nullptr ? 0 : experiment.quantization->steps_before();
  int64_t last = before > 0 ? before + 1 : 0;
  std::vector<PlannedParameter> plan;
  try {
    plan = experiment.plan();
  } catch (const ConfigError&) {
    return last;  // only of a resumed run, which has this step in its checkpoint
  }
  for (const PlannedParameter& planned : plan) {
    if (planned.nnz_before != planned.initial_nnz) last = std::max(last, planned.begin);
    if (!planned.changes.empty()) {
      int64_t nonzeros = planned.initial_nnz;
      for (const auto& change : planned.changes) {
        if (change.nnz != std::exchange(nonzeros, change.nnz)) last = std::max(last, change.step);
      }
    } else if (planned.initial_nnz != planned.final_nnz && !planned.update_steps.empty()) {
      last = std::max(last, planned.update_steps.front());
    }
  }
  return last;
}

}  // namespace

Trainer::Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress)
    : experiment_(experiment),
      folder_(std::move(folder)),
      state_{.stopping = EarlyStopping(experiment.train.early_stopping,
                                       last_planned_change(experiment), experiment.total_steps())},
      reporter_(std::make_unique<RunReporter>(experiment_, state_, folder_, progress)) {}

Trainer::~Trainer() = default;

void Trainer::resume(const CheckpointFile& file, ChangedOrigins changed) {
  const Checkpoint saved = file.read();
  if (saved.step > total_steps()) {
    const std::string length = experiment_.train.length.to_string();
    const std::string steps = plural(total_steps(), "step");
    throw ConfigError(
        fmt::format("the run has already done {}, more than the requested {}: give train.epochs or "
                    "train.steps a larger value",
                    plural(saved.step, "step"),
                    length == steps ? steps : fmt::format("{} ({})", length, steps)));
  }
  naming_file(file.path(), [&] {
    experiment_.load_state_dict(saved.state, changed);
    require_finite(saved.state, file.path());
    state_.load_state_dict(saved.state.below("trainer"), experiment_.loss.answers());
    const StateDict trainer = saved.state.below("trainer");
    for (const char* key : {"test_accuracy", "validation_accuracy", "best_test_accuracy",
                            "best_validation_accuracy"}) {
      const bool must_be = trainer.contains(key) && experiment_.loss.has_accuracy();
      if (must_be) saved.state.number(std::string("trainer/") + key, 0.0, 1.0);  // not NaN
    }
    if (state_.step == saved.step) return;
    throw CheckpointError(
        fmt::format("its attribute 'step' is {}, 'trainer/step' in the saved state {}", saved.step,
                    state_.step));
  });
  state_.train_seconds = saved.train_seconds;
  last_saved_step_ = state_.step;
  if (experiment_.is_first()) {
    folder_.prune_checkpoints(experiment_.train.checkpoint.keep_last);
    set_stale_best_aside(folder_, &saved);
  }
  reporter_->open_metrics(saved.metrics_bytes);
  if (!experiment_.is_first()) return;
  log_info(fmt::format("resumed at step {} from {}", state_.step, file.path()));
  for (const std::string& change : experiment_.changes_since(saved.state)) {
    log_info(fmt::format("changed at step {}: {}", state_.step, change));
  }
  const std::string unknown = experiment_.origins->unknown_in(RunOrigins::from_state(saved.state));
  if (!unknown.empty()) log_info(unknown);
  if (saved.arithmetic_revision != kArithmeticRevision) {
    log_info(arithmetic_notice(saved.arithmetic_revision));
  }
}

RunEnd Trainer::run() {
  const StopSignal stop_signal;
  is_asked_to_stop_ = false;
  if (experiment_.is_first() && !finished()) {
    warn_about_rates_of_zero(experiment_.config.at("optimizer"), state_.step, total_steps());
  }
  begin();
  while (!finished() && !must_stop()) {
    train_step();
    has_trained_ = true;
    state_.evaluation_is_due = is_due(experiment_.train.eval_every) || state_.step == total_steps();
    const bool is_last = state_.evaluation_is_due && state_.step == total_steps();
    if (is_last || is_due(experiment_.train.checkpoint.every)) save();
    if (state_.evaluation_is_due) evaluate_splits();
    fault_point("step.between");
  }
  return finished() ? finish() : interrupt();
}

// A signal to any process stops all, before the same step.
bool Trainer::must_stop() {
  const ProfileSpan span(Work::Exchange);
  signal_ = is_asked_to_stop_ ? kAskedToStop : StopSignal::received();
  if (Communicator* job = experiment_.communicator()) {
    const double own = signal_;
    for (const std::vector<double>& other : job->gather(std::span(&own, 1))) {
      signal_ = std::max(signal_, static_cast<int>(other[0]));
    }
  }
  return signal_ != 0;
}

void Trainer::watch_events(std::function<void(const Config& event)> watcher) {
  reporter_->watch(std::move(watcher));
}

void Trainer::save_beginning() {
  reporter_->open_metrics(0);
  save();
}

void Trainer::begin() {
  experiment_.model->train();
  if (last_saved_step_ < 0) {
    if (experiment_.is_first()) set_stale_best_aside(folder_, nullptr);
    save_beginning();  // every run can be resumed from it
  }
  if (finished()) {
    log_info("nothing is left to train: " + how_it_ended());
  } else if (experiment_.is_first()) {
    std::error_code ignored;  // of an earlier, shorter run; the new one replaces it at the end
    std::filesystem::remove(folder_.summary_path(), ignored);
  }
  reporter_->begin();
  if (state_.evaluation_is_due) {
    evaluate_splits();  // which the checkpoint was saved before
    if (experiment_.is_first()) {
      const Checkpoint now = checkpoint();
      set_stale_best_aside(folder_, &now);
    }
  } else if (!finished()) {
    try_evaluations();
  }
}

// And the command to type if it can be resumed unchanged.
std::string Trainer::how_it_ended() const {
  const std::string at = fmt::format(" at step {}", state_.step);
  if (!state_.stopping.has_stopped()) return "the run has ended" + at;
  const std::string ended = "early stopping has ended the run" + at;
  if (state_.step >= total_steps()) return ended;
  return fmt::format(
      "{} of {}; to continue: lacuna train --resume --run-dir {} --set "
      "train.early_stopping.patience={} (or --set train.early_stopping=null, to the end)",
      ended, total_steps(), shell_word(folder_.path()),
      2 * experiment_.train.early_stopping->patience);
}

void Trainer::train_step() {
  const ProfileSpan span(Work::Step);
  const StepClock::time_point start = StepClock::now();
  const TrainingSums sums =
      is_traced() ? run_traced_batches(experiment_) : run_batches(experiment_);
  if (!std::isfinite(sums.mean_loss())) fail_diverged("the training loss", state_.step + 1);
  fault_point("step.before_update");
  if (state_.training_flops) {  // before the masks change
    const Flops flops =
        count_flops(experiment_.rows, [](const Parameter& p) { return p.pattern()->nnz(); });
    *state_.training_flops += flops.training * static_cast<double>(sums.examples);
  }
  update();
  const double seconds = seconds_since(start);
  state_.add_step(sums, seconds, experiment_.steps_per_epoch());
  reporter_->count_step(sums, seconds);
  after_step(sums);
}

void Trainer::update() {
  {
    const ProfileSpan span(Work::Optimizer);
    step_optimizers(experiment_);
  }
  if (experiment_.average) {
    const ProfileSpan span(Work::Average);
    experiment_.average->update(experiment_.optimizer->steps());
  }
  experiment_.optimizer->zero_grad();
}

bool Trainer::is_traced() const { return experiment_.train.trace_autograd && state_.step == 0; }

void Trainer::after_step(const TrainingSums& sums) {
  if (step_watcher_) {
    reporter_->clear();
    step_watcher_(sums.mean_loss());
  }
  const ProfileSpan span(Work::Metrics);
  reporter_->report_mask_updates();
  if (is_due(experiment_.train.log_every)) {
    reporter_->report_training();
    state_.window = {};
  }
  reporter_->show_progress(sums);
}

bool Trainer::is_due(const Period& period) const {
  return state_.step % period.in_steps(experiment_.steps_per_epoch()) == 0;
}

void Trainer::save() {
  if (last_saved_step_ == state_.step && !has_unsaved_evaluation_) return;
  const ProfileSpan span(Work::Checkpoint);
  require_finite_values();
  if (experiment_.is_first()) {
    const Checkpoint now = checkpoint();
    if (const std::string name = first_not_finite(now.state); !name.empty()) {
      fail_diverged("the state '" + name + "'", state_.step);
    }
    folder_.save_checkpoint(now, experiment_.train.checkpoint.keep_last);
  }
  last_saved_step_ = state_.step;
  has_unsaved_evaluation_ = false;
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint checkpoint{.state = experiment_.state_dict(),
                        .config_yaml = experiment_.config.to_yaml(),
                        .step = state_.step,
                        .train_seconds = state_.train_seconds,
                        .metrics_bytes = reporter_->flushed_metrics_bytes()};
  checkpoint.state.merge("trainer", state_.state_dict());
  return checkpoint;
}

RunEnd Trainer::finish() {
  // Only a run that was made shorter has not been evaluated at its end.
  const bool is_evaluated = state_.last_evaluated_step == state_.step;
  if (!is_evaluated) evaluate_splits();
  save();
  // The summary of a run that had already ended describes the process that trained it, and stays.
  const bool is_told = is_evaluated && !has_trained_ && folder_.has_summary();
  confusion_.write(state_.step, is_told ? "" : folder_.path());
  if (!is_told) reporter_->set_dense_step(time_dense_step());
  fault_point("run.before_summary");
  reporter_->write_summary(is_told ? SummaryFile::Kept : SummaryFile::Written);
  if (!state_.stopping.has_stopped()) return RunEnd::Finished;
  restore_best();
  return RunEnd::StoppedEarly;
}

// For a twentieth of the time that the run took, at most two seconds.
std::optional<DenseStep> Trainer::time_dense_step() const {
  if (state_.step == 0 || !experiment_.is_first()) return std::nullopt;
  return dense_step(experiment_, state_.train_seconds / static_cast<double>(state_.step),
                    std::clamp(0.05 * state_.train_seconds, 0.01, 2.0));
}

const Config& Trainer::summary() const { return reporter_->summary(); }

// After a signal, or at the request of a watcher.
RunEnd Trainer::interrupt() {
  reporter_->clear();
  save();
  if (experiment_.is_first())
    log_warning(
        fmt::format("stopped at step {} of {}; continue with `lacuna train --resume --run-dir {}`",
                    state_.step, total_steps(), shell_word(folder_.path())));
  if (signal_ == kAskedToStop) return RunEnd::Stopped;
  if (signal_ == SIGHUP) return RunEnd::HungUp;
  return signal_ == SIGINT ? RunEnd::Interrupted : RunEnd::Terminated;
}

void Trainer::require_finite_values() const {
  const auto require = [&](const char* what, const std::string& name, const Tensor& values) {
    if (std::ranges::all_of(values.storage(), [](float value) { return std::isfinite(value); })) {
      return;
    }
    fail_diverged(fmt::format("the {} '{}'", what, name), state_.step);
  };
  for (const ParameterPtr& parameter : experiment_.model->parameters()) {
    require("parameter", parameter->name(), parameter->values());
  }
  for (const auto& [name, values] : experiment_.model->buffers()) {
    require("buffer", name, *values);
  }
}

void Trainer::fail_diverged(const std::string& what, int64_t step) const {
  if (last_saved_step_ < 0) {
    throw Error(
        what +
        " is NaN or infinite before the first step: training cannot begin with such values; "
        "check the loaded weights and the data");
  }
  throw Error(fmt::format(
      "{} is NaN or infinite at step {}: training has stopped, and the last checkpoint is of step "
      "{}. Resuming would repeat this; in a new run a smaller learning rate, a warmup or clip_norm "
      "may help",
      what, step, last_saved_step_));
}

}  // namespace lacuna
