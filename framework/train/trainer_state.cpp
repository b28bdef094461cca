// What the trainer saves, and how it goes on from there.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/trainer.h"

namespace lacuna {
namespace {

void add_sums(StateDict& state, const std::string& prefix, const TrainingSums& sums) {
  state.set(prefix + "_loss", sums.loss);
  state.set(prefix + "_correct", sums.correct);
  state.set(prefix + "_examples", sums.examples);
}

TrainingSums read_sums(const StateDict& state, const std::string& prefix) {
  const int64_t examples = state.count(prefix + "_examples");
  return {.loss = state.number(prefix + "_loss"),
          .correct = state.count(prefix + "_correct", examples),
          .examples = examples};
}

// Bytes of a text file up to its last line end.
int64_t whole_lines(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const size_t end = text.rfind('\n');
  return end == std::string::npos ? 0 : static_cast<int64_t>(end) + 1;
}

}  // namespace

StateDict Trainer::own_state() const {
  StateDict own;
  own.set("step", step_);
  own.set("examples", examples_);
  add_sums(own, "epoch", epoch_sums_);
  add_sums(own, "window", window_sums_);
  own.set("last_epoch_loss", last_epoch_loss_);
  own.set("evaluations_without_gain", evaluations_without_gain_);
  own.set("stopped_early", static_cast<int64_t>(stopped_early_));
  own.set("last_evaluated_step", last_evaluated_step_);
  if (best_score_) own.set("best_score", *best_score_);
  if (score_to_beat_) own.set("score_to_beat", *score_to_beat_);
  if (test_) {
    own.set("test_loss", test_->loss);
    own.set("test_accuracy", test_->accuracy);
    own.set("test_examples", test_->examples);
  }
  return own;
}

void Trainer::load_own_state(const StateDict& own) {
  step_ = own.count("step");
  examples_ = own.count("examples");
  epoch_sums_ = read_sums(own, "epoch");
  window_sums_ = read_sums(own, "window");
  last_epoch_loss_ = own.number("last_epoch_loss");
  evaluations_without_gain_ = own.count("evaluations_without_gain", step_);
  stopped_early_ = own.count("stopped_early", 1) != 0;
  last_evaluated_step_ = own.get<int64_t>("last_evaluated_step");
  if (last_evaluated_step_ != -1) own.count("last_evaluated_step", step_);
  if (own.contains("best_score")) best_score_ = own.number("best_score");
  if (own.contains("score_to_beat")) score_to_beat_ = own.number("score_to_beat");
  if (own.contains("test_loss")) {
    test_ = {.loss = own.number("test_loss"),
             .accuracy = own.number("test_accuracy", 0.0, 1.0),
             .examples = own.count("test_examples")};
  }
}

StateDict Trainer::state_dict() const {
  StateDict state;
  state.merge("model", experiment_.model->state_dict());
  state.merge("optimizer", experiment_.optimizer->state_dict());
  if (experiment_.sparsity != nullptr) {
    state.merge("algorithm", experiment_.sparsity->state_dict());
  }
  state.merge("loader", experiment_.loader->state());
  state.merge("trainer", own_state());
  state.merge("data", InputFormat::of(experiment_.data).state_dict());
  return state;
}

void Trainer::load_state_dict(const StateDict& state) {
  experiment_.load_state_dict(state);
  load_own_state(state.below("trainer"));
}

Checkpoint Trainer::checkpoint() const {
  return {.state = state_dict(),
          .config_yaml = experiment_.config.to_yaml(),
          .step = step_,
          .train_seconds = train_seconds_,
          .metrics_bytes = metrics_->size()};
}

void Trainer::require_finite_parameters() const {
  for (const ParameterPtr& parameter : experiment_.model->parameters()) {
    const bool is_finite = std::ranges::all_of(parameter->values().storage(),
                                               [](float value) { return std::isfinite(value); });
    if (!is_finite) fail_diverged("the parameter '" + parameter->name() + "'", step_);
  }
}

void Trainer::save() {
  if (last_saved_step_ == step_) return;
  require_finite_parameters();
  folder_.save_checkpoint(checkpoint(), experiment_.train.checkpoint.keep_last);
  last_saved_step_ = step_;
}

// What was written after a checkpoint is going to be written again, so it is cut off. A file that
// is shorter has lost lines, or the end of one, in a crash of the machine.
void Trainer::open_metrics(int64_t bytes) {
  const std::string path = folder_.metrics_path();
  metrics_ = std::make_unique<JsonLines>(path);
  if (metrics_->size() == bytes) return;
  int64_t keep = bytes;
  if (metrics_->size() < bytes) {
    keep = whole_lines(path);
    log_warning("'" + path + "' has lost events: it is shorter than it was at the checkpoint");
  }
  metrics_.reset();
  truncate_file(path, keep);
  metrics_ = std::make_unique<JsonLines>(path);
}

void Trainer::resume(const std::string& checkpoint_path) {
  const Checkpoint saved = read_checkpoint(checkpoint_path);
  if (saved.step > total_steps_) {
    throw ConfigError("the run has done " + std::to_string(saved.step) + " steps already, and " +
                      experiment_.train.length.to_string() + " are " +
                      std::to_string(total_steps_) +
                      " steps: give train.epochs or train.steps a "
                      "larger value");
  }
  naming_file(checkpoint_path, [&] {
    load_state_dict(saved.state);
    if (step_ == saved.step) return;
    throw CheckpointError("its attribute 'step' is " + std::to_string(saved.step) +
                          ", 'trainer/step' in the saved state " + std::to_string(step_));
  });
  train_seconds_ = saved.train_seconds;
  last_saved_step_ = step_;
  folder_.prune_checkpoints(experiment_.train.checkpoint.keep_last);
  open_metrics(saved.metrics_bytes);
  log_info("resumed at step " + std::to_string(step_) + " from " + checkpoint_path);
}

}  // namespace lacuna
