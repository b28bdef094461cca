// What the trainer writes about a run: metrics, progress, evaluations, the summary.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/train/trainer.h"

namespace lacuna {
namespace {

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double ratio(int64_t count, double seconds) {
  return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
}

}  // namespace

double Trainer::epochs_done() const {
  return static_cast<double>(step_) / static_cast<double>(steps_per_epoch_);
}

// What the events of all splits have in common. Regression has no accuracy.
Config Trainer::event(const char* split, double loss, double accuracy) const {
  Config event =
      Config::map({{"step", step_}, {"epoch", epochs_done()}, {"split", split}, {"loss", loss}});
  if (experiment_.loss.is_classification()) event.set("accuracy", accuracy);
  event.set("lr", experiment_.optimizer->lr());
  return event;
}

ProgressReport Trainer::progress_report(const TrainingSums& sums, double rate) const {
  const bool classes = experiment_.loss.is_classification();
  return {
      .step = step_,
      .total_steps = total_steps_,
      .epoch = epochs_done(),
      .loss = sums.mean_loss(),
      .accuracy = classes ? sums.accuracy() : std::numeric_limits<double>::quiet_NaN(),
      .density = static_cast<double>(experiment_.nnz()) / static_cast<double>(experiment_.numel()),
      .examples_per_second = rate};
}

void Trainer::log_training() {
  const double rate = ratio(window_examples_, window_seconds_);
  Config training = event("train", window_sums_.mean_loss(), window_sums_.accuracy());
  training.set("examples_per_second", rate);
  training.set("seconds", train_seconds_);
  if (experiment_.sparsity != nullptr) {
    Config sparsity = Config::map();
    for (const ParameterPtr& parameter : experiment_.sparsity->parameters()) {
      sparsity.set(parameter->name(),
                   Config::map({{"target", experiment_.sparsity->target_sparsity(*parameter)},
                                {"actual", 1.0 - parameter->pattern()->density()}}));
    }
    training.set("sparsity", sparsity);
  }
  metrics_->write(training);
  progress_.report(progress_report(window_sums_, rate));
  window_sums_ = {};
  window_seconds_ = 0.0;
  window_examples_ = 0;
}

void Trainer::log_mask_updates() {
  if (experiment_.sparsity == nullptr) return;
  for (const MaskUpdate& update : experiment_.sparsity->last_update()) {
    Config line = Config::map({{"step", step_},
                               {"epoch", epochs_done()},
                               {"split", "update"},
                               {"parameter", update.parameter},
                               {"target", update.target_sparsity},
                               {"actual", update.actual_sparsity},
                               {"nnz", update.nnz},
                               {"dropped", update.dropped},
                               {"grown", update.grown},
                               {"churn", update.churn},
                               {"dead_rows", update.dead_rows},
                               {"dead_columns", update.dead_columns},
                               {"layout", update.layout}});
    if (update.ever_active) line.set("ever_active", *update.ever_active);
    metrics_->write(line);
  }
}

void Trainer::evaluate_splits() {
  bool is_best = false;
  if (experiment_.data.validation != nullptr) {
    is_best = judge(evaluate_split("validation", *experiment_.data.validation));
  }
  if (experiment_.data.test != nullptr) test_ = evaluate_split("test", *experiment_.data.test);
  last_evaluated_step_ = step_;
  if (is_best && experiment_.train.checkpoint.keep_best) {
    write_checkpoint(folder_.best_path(), checkpoint());
  }
}

Evaluation Trainer::evaluate_split(const char* split, const Dataset& data) {
  const auto start = std::chrono::steady_clock::now();
  const Evaluation result =
      evaluate(*experiment_.model, experiment_.loss, data, experiment_.train.eval_batch_size);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!std::isfinite(result.loss)) fail_diverged(std::string("the ") + split + " loss", step_);
  Config evaluation = event(split, result.loss, result.accuracy);
  evaluation.set("examples_per_second", ratio(result.examples, seconds.count()));
  evaluation.set("seconds", train_seconds_);
  metrics_->write(evaluation);
  char text[128];
  int length = std::snprintf(text, sizeof text, "epoch %.2f  %s loss %.4g", epochs_done(), split,
                             result.loss);
  std::string line(text, static_cast<size_t>(length));
  if (experiment_.loss.is_classification()) {
    length = std::snprintf(text, sizeof text, "  accuracy %.2f %%", 100.0 * result.accuracy);
    line.append(text, static_cast<size_t>(length));
  }
  progress_.clear();
  log_info(line);
  return result;
}

// Whether this is the best evaluation so far. Notes when it is time to stop.
bool Trainer::judge(const Evaluation& validation) {
  const double score =
      experiment_.loss.is_classification() ? validation.accuracy : -validation.loss;
  if (const auto& stopping = experiment_.train.early_stopping) {
    if (!score_to_beat_ || score > *score_to_beat_ + stopping->min_delta) {
      score_to_beat_ = score;
      evaluations_without_gain_ = 0;
    } else if (++evaluations_without_gain_ >= stopping->patience) {
      stopped_early_ = true;
      log_info("early stopping at step " + std::to_string(step_) + ": no better validation in " +
               std::to_string(stopping->patience) + " evaluations");
    }
  }
  const bool is_best = !best_score_ || score > *best_score_;
  if (is_best) best_score_ = score;
  return is_best;
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
  summary.set("examples_per_second", ratio(examples_, train_seconds_));
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
