// The loop. What a checkpoint holds and how it is taken is in trainer_state.cpp.
#include "lacuna/framework/train/trainer.h"

#include <cmath>
#include <csignal>
#include <limits>
#include <utility>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/train/stop_signal.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

LoaderOptions loader_options(const TrainOptions& train) {
  return {.batch_size = train.batch_size,
          .shuffle = Shuffle::EveryEpoch,
          .last_batch = train.drop_last ? LastBatch::Drop : LastBatch::Keep,
          .seed = train.seed,
          .prefetch = train.prefetch};
}

}  // namespace

double TrainingSums::mean_loss() const {
  return examples == 0 ? 0.0 : loss / static_cast<double>(examples);
}

double TrainingSums::accuracy() const {
  return examples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(examples);
}

Trainer::Trainer(Experiment& experiment, RunFolder folder, ProgressStyle progress)
    : experiment_(experiment),
      folder_(std::move(folder)),
      loader_(experiment.data.train, loader_options(experiment.train)),
      progress_(progress) {
  const TrainOptions& train = experiment_.train;
  steps_per_epoch_ = (loader_.batches_per_epoch() + train.accumulate - 1) / train.accumulate;
  total_steps_ = train.length.in_steps(steps_per_epoch_);
}

RunEnd Trainer::run() {
  const StopSignal stop_signal;
  if (metrics_ == nullptr) metrics_ = std::make_unique<JsonLines>(folder_.metrics_path());
  experiment_.model->train();
  if (step_ == 0 && last_saved_step_ < 0) save();  // every run can be resumed from its beginning
  while (!finished() && StopSignal::received() == 0) {
    train_step();
    const int64_t every = experiment_.train.checkpoint.every.in_steps(steps_per_epoch_);
    if (step_ % every == 0) save();
    fault_point("step.between");
  }
  progress_.clear();
  if (!finished()) {
    save();
    const bool interrupted = StopSignal::received() == SIGINT;
    log_warning("stopped at step " + std::to_string(step_) + " of " + std::to_string(total_steps_) +
                "; continue with --resume");
    return interrupted ? RunEnd::Interrupted : RunEnd::Terminated;
  }
  if (last_evaluated_step_ != step_) evaluate_splits();
  save();
  const RunEnd end = stopped_early_ ? RunEnd::StoppedEarly : RunEnd::Finished;
  write_summary(end);
  return end;
}

void Trainer::train_step() {
  const auto start = Clock::now();
  const StepResult result = run_batches(next_batches());
  if (!std::isfinite(result.loss)) {
    throw Error("the loss is " + Config(result.loss).text() + " at step " +
                std::to_string(step_ + 1) + "; the last checkpoint, of step " +
                std::to_string(last_saved_step_) +
                ", is good. A smaller learning rate or clip_norm may help");
  }
  fault_point("step.before_update");
  experiment_.optimizer->step();
  experiment_.optimizer->zero_grad();
  ++step_;
  const double seconds = seconds_since(start);
  train_seconds_ += seconds;
  window_seconds_ += seconds;
  after_step(result);
}

// The batches of one optimizer step: `accumulate` of them, fewer at the end of an epoch.
std::vector<Batch> Trainer::next_batches() {
  std::vector<Batch> batches;
  const int64_t epoch = loader_.epoch();
  do {
    batches.push_back(loader_.next());
  } while (static_cast<int64_t>(batches.size()) < experiment_.train.accumulate &&
           loader_.epoch() == epoch);
  return batches;
}

// Forward and backward of each batch. Each loss is weighed by its share of the examples, so that
// the gradients add up to that of the mean over all of them.
Trainer::StepResult Trainer::run_batches(const std::vector<Batch>& batches) {
  std::unique_ptr<BackwardTrace> trace;
  if (experiment_.train.trace_autograd && step_ == 0) {
    trace = std::make_unique<BackwardTrace>(
        [](const NodeRun& node) { log_info("backward  " + node.to_string()); });
  }
  StepResult result;
  for (const Batch& batch : batches) result.examples += batch.size;
  for (const Batch& batch : batches) {
    const Variable output = (*experiment_.model)(Variable(batch.inputs));
    const Variable loss = experiment_.loss(output, batch);
    const double share = static_cast<double>(batch.size) / static_cast<double>(result.examples);
    result.loss += static_cast<double>(loss.value().item()) * share;
    if (experiment_.loss.is_classification()) {
      result.correct += count_correct(output.value(), batch.labels);
    }
    if (!std::isfinite(result.loss)) return result;
    backward(loss, Tensor::full(loss.shape(), static_cast<float>(share)));
    fault_point("step.after_backward");
  }
  return result;
}

void Trainer::after_step(const StepResult& result) {
  examples_ += result.examples;
  for (TrainingSums* sums : {&epoch_sums_, &window_sums_}) {
    sums->loss += result.loss * static_cast<double>(result.examples);
    sums->correct += result.correct;
    sums->examples += result.examples;
  }
  log_mask_updates();
  if (step_ % experiment_.train.log_every.in_steps(steps_per_epoch_) == 0) log_training();
  if (step_ % steps_per_epoch_ == 0) end_epoch();
  if (step_ % experiment_.train.eval_every.in_steps(steps_per_epoch_) == 0) evaluate_splits();
  const bool classes = experiment_.loss.is_classification();
  progress_.tick(
      {.step = step_,
       .total_steps = total_steps_,
       .epoch = epochs_done(),
       .loss = result.loss,
       .accuracy = classes
                       ? static_cast<double>(result.correct) / static_cast<double>(result.examples)
                       : std::numeric_limits<double>::quiet_NaN(),
       .density = static_cast<double>(experiment_.nnz()) / static_cast<double>(experiment_.numel()),
       .examples_per_second = static_cast<double>(examples_) / train_seconds_});
}

void Trainer::end_epoch() {
  last_epoch_loss_ = epoch_sums_.mean_loss();
  epoch_sums_ = {};
}

double Trainer::epochs_done() const {
  return static_cast<double>(step_) / static_cast<double>(steps_per_epoch_);
}

// What every event in metrics.jsonl begins with.
Config Trainer::metric(const char* split) const {
  Config event = Config::map({{"step", step_}, {"epoch", epochs_done()}, {"split", split}});
  return event;
}

void Trainer::log_training() {
  const double rate = static_cast<double>(window_sums_.examples) / window_seconds_;
  const bool classes = experiment_.loss.is_classification();
  Config event = metric("train");
  event.set("loss", window_sums_.mean_loss());
  if (classes) event.set("accuracy", window_sums_.accuracy());
  event.set("lr", experiment_.optimizer->lr());
  event.set("examples_per_second", rate);
  event.set("seconds", train_seconds_);
  if (experiment_.sparsity != nullptr) {
    Config sparsity = Config::map();
    for (const ParameterPtr& parameter : experiment_.sparsity->parameters()) {
      sparsity.set(parameter->name(),
                   Config::map({{"target", experiment_.sparsity->target_sparsity(*parameter)},
                                {"actual", 1.0 - parameter->pattern()->density()}}));
    }
    event.set("sparsity", sparsity);
  }
  metrics_->write(event);
  progress_.report(
      {.step = step_,
       .total_steps = total_steps_,
       .epoch = epochs_done(),
       .loss = window_sums_.mean_loss(),
       .accuracy = classes ? window_sums_.accuracy() : std::numeric_limits<double>::quiet_NaN(),
       .density = static_cast<double>(experiment_.nnz()) / static_cast<double>(experiment_.numel()),
       .examples_per_second = rate});
  window_sums_ = {};
  window_seconds_ = 0.0;
}

void Trainer::log_mask_updates() {
  if (experiment_.sparsity == nullptr) return;
  for (const MaskUpdate& update : experiment_.sparsity->last_update()) {
    Config event = metric("update");
    event.set("parameter", update.parameter);
    event.set("target", update.target_sparsity);
    event.set("actual", update.actual_sparsity);
    event.set("nnz", update.nnz);
    event.set("dropped", update.dropped);
    event.set("grown", update.grown);
    event.set("churn", update.churn);
    event.set("ever_active", update.ever_active);
    event.set("dead_rows", update.dead_rows);
    event.set("dead_columns", update.dead_columns);
    metrics_->write(event);
  }
}

void Trainer::evaluate_splits() {
  last_evaluated_step_ = step_;
  const auto run = [&](const char* split, const Dataset& data) {
    const auto start = Clock::now();
    const Evaluation result =
        evaluate(*experiment_.model, experiment_.loss, data, experiment_.train.eval_batch_size);
    Config event = metric(split);
    event.set("loss", result.loss);
    if (experiment_.loss.is_classification()) event.set("accuracy", result.accuracy);
    event.set("lr", experiment_.optimizer->lr());
    event.set("examples_per_second", static_cast<double>(result.examples) / seconds_since(start));
    event.set("seconds", train_seconds_);
    metrics_->write(event);
    progress_.clear();
    char text[128];
    if (experiment_.loss.is_classification()) {
      std::snprintf(text, sizeof text, "epoch %.2f  %s loss %.4f  accuracy %.2f %%", epochs_done(),
                    split, result.loss, 100.0 * result.accuracy);
    } else {
      std::snprintf(text, sizeof text, "epoch %.2f  %s loss %.6g", epochs_done(), split,
                    result.loss);
    }
    log_info(text);
    return result;
  };
  if (experiment_.data.validation != nullptr) {
    judge(run("validation", *experiment_.data.validation));
  }
  if (experiment_.data.test != nullptr) test_ = run("test", *experiment_.data.test);
}

// Whether this evaluation is the best so far, and whether it is time to stop.
void Trainer::judge(const Evaluation& validation) {
  const double score =
      experiment_.loss.is_classification() ? validation.accuracy : -validation.loss;
  const auto& stopping = experiment_.train.early_stopping;
  const double margin = stopping ? stopping->min_delta : 0.0;
  if (!best_ || score > *best_ + margin) {
    best_ = score;
    evaluations_since_best_ = 0;
    if (experiment_.train.checkpoint.keep_best) {
      write_checkpoint(folder_.best_path(), checkpoint());
    }
    return;
  }
  ++evaluations_since_best_;
  if (stopping && evaluations_since_best_ >= stopping->patience) {
    stopped_early_ = true;
    log_info("early stopping at step " + std::to_string(step_) + ": no better validation in " +
             std::to_string(stopping->patience) + " evaluations");
  }
}

}  // namespace lacuna
