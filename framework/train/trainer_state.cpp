// What the trainer saves, and what it leaves at the end.
#include <sys/resource.h>

#include <cstdlib>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/train/trainer.h"

namespace lacuna {
namespace {

void add_sums(StateDict& state, const std::string& prefix, const TrainingSums& sums) {
  state.set(prefix + "_loss", sums.loss);
  state.set(prefix + "_correct", sums.correct);
  state.set(prefix + "_examples", sums.examples);
}

TrainingSums read_sums(const StateDict& state, const std::string& prefix) {
  return {.loss = state.get<double>(prefix + "_loss"),
          .correct = state.get<int64_t>(prefix + "_correct"),
          .examples = state.get<int64_t>(prefix + "_examples")};
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

// What `predict` needs to treat new inputs as the training data was treated.
StateDict Trainer::input_format() const {
  const auto row = [](const std::vector<double>& values) {
    const std::vector<float> floats(values.begin(), values.end());
    return Tensor::from(Shape{static_cast<int64_t>(floats.size())}, floats);
  };
  const std::span<const int64_t> sizes = experiment_.data.train->example_shape().sizes();
  StateDict format;
  format.set("example_shape", std::vector<int64_t>(sizes.begin(), sizes.end()));
  format.set("mean", row(experiment_.data.normalization.mean));
  format.set("std", row(experiment_.data.normalization.std));
  return format;
}

StateDict Trainer::state_dict() const {
  StateDict own;
  own.set("step", step_);
  own.set("examples", examples_);
  add_sums(own, "epoch", epoch_sums_);
  add_sums(own, "window", window_sums_);
  own.set("last_epoch_loss", last_epoch_loss_);
  own.set("evaluations_since_best", evaluations_since_best_);
  own.set("stopped_early", static_cast<int64_t>(stopped_early_));
  if (best_) own.set("best", *best_);

  StateDict state;
  state.merge("model", experiment_.model->state_dict());
  state.merge("optimizer", experiment_.optimizer->state_dict());
  if (experiment_.sparsity != nullptr) {
    state.merge("algorithm", experiment_.sparsity->state_dict());
  }
  state.merge("loader", loader_.state());
  state.merge("trainer", own);
  state.merge("data", input_format());
  return state;
}

void Trainer::load_state_dict(const StateDict& state) {
  experiment_.model->load_state_dict(state.below("model"));
  experiment_.optimizer->load_state_dict(state.below("optimizer"));
  if (experiment_.sparsity != nullptr) {
    experiment_.sparsity->load_state_dict(state.below("algorithm"));
  }
  loader_.load_state(state.below("loader"));
  const StateDict own = state.below("trainer");
  step_ = own.get<int64_t>("step");
  examples_ = own.get<int64_t>("examples");
  epoch_sums_ = read_sums(own, "epoch");
  window_sums_ = read_sums(own, "window");
  last_epoch_loss_ = own.get<double>("last_epoch_loss");
  evaluations_since_best_ = own.get<int64_t>("evaluations_since_best");
  stopped_early_ = own.get<int64_t>("stopped_early") != 0;
  if (own.contains("best")) best_ = own.get<double>("best");
}

Checkpoint Trainer::checkpoint() const {
  return {.state = state_dict(),
          .config_yaml = experiment_.config.to_yaml(),
          .step = step_,
          .train_seconds = train_seconds_,
          .metrics_bytes = metrics_->size()};
}

void Trainer::save() {
  if (last_saved_step_ == step_) return;
  folder_.save_checkpoint(checkpoint(), experiment_.train.checkpoint.keep_last);
  last_saved_step_ = step_;
}

void Trainer::resume(const std::string& checkpoint_path) {
  const Checkpoint saved = read_checkpoint(checkpoint_path);
  load_state_dict(saved.state);
  train_seconds_ = saved.train_seconds;
  last_saved_step_ = step_;
  // What was written after the checkpoint is going to be written again.
  metrics_ = std::make_unique<JsonLines>(folder_.metrics_path());
  if (metrics_->size() > saved.metrics_bytes) {
    metrics_.reset();
    truncate_file(folder_.metrics_path(), saved.metrics_bytes);
    metrics_ = std::make_unique<JsonLines>(folder_.metrics_path());
  }
  log_info("resumed at step " + std::to_string(step_) + " from " + checkpoint_path);
}

void Trainer::write_summary(RunEnd end) {
  Config summary = Config::map();
  if (test_) {
    if (experiment_.loss.is_classification()) summary.set("test_accuracy", test_->accuracy);
    summary.set("test_loss", test_->loss);
  }
  const bool within_epoch = epoch_sums_.examples > 0;
  summary.set("train_loss", within_epoch ? epoch_sums_.mean_loss() : last_epoch_loss_);
  summary.set("epochs", epochs_done());
  summary.set("steps", step_);
  summary.set("train_seconds", train_seconds_);
  summary.set("examples_per_second", static_cast<double>(examples_) / train_seconds_);
  summary.set("peak_rss_bytes", peak_rss_bytes());
  summary.set("numel", experiment_.numel());
  summary.set("nnz", experiment_.nnz());
  summary.set("seed", static_cast<int64_t>(experiment_.train.seed));
  summary.set("threads", num_threads());
  summary.set("instruction_set", active_instruction_set());
  summary.set("version", kVersion);
  summary.set("stopped_early", end == RunEnd::StoppedEarly);
  write_file_atomically(folder_.summary_path(), summary.to_json_indented());
}

}  // namespace lacuna
