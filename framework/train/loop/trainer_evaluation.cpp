// The trainer's evaluations: made, judged, and the best one's model kept and restored.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/job/shared_checkpoint.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/train/loop/clock.hpp"
#include "lacuna/framework/train/loop/run_reporter.hpp"
#include "lacuna/framework/train/loop/text_sample.hpp"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/runs/best_checkpoint.hpp"

namespace lacuna {

// Whether there is memory to evaluate is known before an epoch is trained.
void Trainer::try_evaluations() {
  for (const auto& data : {experiment_.data.validation, experiment_.data.test}) {
    if (data == nullptr) continue;
    const ProfileSpan span(Work::Evaluation);
    try_evaluation(*experiment_.model, experiment_.loss, *data, experiment_.train.eval_batch_size);
  }
}

void Trainer::evaluate_splits() {
  const DataSplits& data = experiment_.data;
  bool is_best = false;
  write_sample();
  if (data.validation != nullptr) {
    state_.validation = evaluate_split("validation", *data.validation);
    is_best = judge(*state_.validation);
  }
  if (data.test != nullptr) {
    state_.test = evaluate_split("test", *data.test);
    if (data.validation == nullptr) is_best = judge(*state_.test);
  }
  state_.last_evaluated_step = state_.step;
  state_.evaluation_is_due = false;
  has_unsaved_evaluation_ = true;
  if (is_best) {
    state_.best = {.step = state_.step, .test = state_.test, .validation = state_.validation};
  }
  const bool is_kept = is_best && data.validation != nullptr && experiment_.is_first();
  if (is_kept && experiment_.train.checkpoint.keep_best) {
    const ProfileSpan span(Work::Checkpoint);
    const Checkpoint best = checkpoint();
    write_checkpoint(folder_.best_path(), best);
    remove_remade_best(folder_, best);
  } else if (is_kept) {
    set_best_aside(folder_, fmt::format("is no longer the best: step {} is, which is not kept "
                                        "(train.checkpoint.keep_best)",
                                        state_.step));
  }
}

// With the split that is evaluated next.
void Trainer::write_sample() {
  if (!experiment_.train.sample || !experiment_.is_first()) return;
  const ProfileSpan span(Work::Evaluation, "sample");
  reporter_->report_sample(sample_text(experiment_));
}

Evaluation Trainer::evaluate_split(const char* split, const Dataset& data) {
  const ProfileSpan span(Work::Evaluation, split);
  const StepClock::time_point start = StepClock::now();
  const auto averaged = experiment_.average ? experiment_.average->show() : nullptr;
  const FakeWeights on_grids(experiment_.quantization.get());
  const Evaluation result =
      evaluate(*experiment_.model, experiment_.loss, data, experiment_.train.eval_batch_size,
               confusion_.watcher(split, state_.step), experiment_.communicator());
  const double seconds = seconds_since(start);
  if (!std::isfinite(result.loss)) fail_diverged(fmt::format("the {} loss", split), state_.step);
  reporter_->report_evaluation(split, result, seconds);
  return result;
}

// Whether this is the best evaluation so far. Notes when it is time to stop.
bool Trainer::judge(const Evaluation& result) {
  const LossFunction& loss = experiment_.loss;
  const bool by_accuracy = loss.has_accuracy() && !loss.has_token_labels();
  const double precision = result.precisions.front();
  const double score = by_accuracy             ? result.accuracy
                       : std::isnan(precision) ? -result.loss
                                               : precision;
  int64_t nonzeros = 0;
  for (const ParameterPtr& p : experiment_.model->parameters()) nonzeros += p->pattern()->nnz();
  const QuantizationAware* qat = experiment_.quantization.get();
  const bool is_best = state_.stopping.judge(state_.step, score, nonzeros, result.loss,
                                             qat != nullptr && qat->is_active());
  if (state_.stopping.has_stopped()) {
    log_info(fmt::format("early stopping at step {}: the validation result has not improved in {}",
                         state_.step,
                         plural(experiment_.train.early_stopping->patience, "evaluation")));
  }
  return is_best;
}

// The model alone: nothing is trained any more.
void Trainer::restore_best() {
  if (!state_.best || state_.best->step == state_.step) return;
  std::error_code missing;
  std::optional<CheckpointFile> kept;
  if (experiment_.is_first() && std::filesystem::exists(folder_.best_path(), missing)) {
    try {
      kept.emplace(folder_.best_path());
    } catch (const CheckpointError& damaged) {
      log_warning(std::string(damaged.what()) + "; the model keeps the weights of the last step");
    }
  }
  const SharedCheckpoint shared(experiment_.communicator(), std::move(kept));
  if (!shared.file()) return;
  const Checkpoint best = shared.file()->read();
  if (best.step != state_.best->step) {
    if (experiment_.is_first()) {
      log_warning(
          fmt::format("'{}' is of step {}, and the run's best of step {}; the model keeps the "
                      "weights of the last step",
                      folder_.best_path(), best.step, state_.best->step));
    }
    return;
  }
  experiment_.model->load_state_dict(best.state.below("model"));
  if (experiment_.quantization != nullptr) {
    experiment_.quantization->load_state_dict(best.state.below("qat"));
  }
  log_info(fmt::format("the model has the weights of step {}, the best", best.step));
}

}  // namespace lacuna
