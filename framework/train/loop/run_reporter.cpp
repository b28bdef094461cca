#include "lacuna/framework/train/loop/run_reporter.hpp"
#include "lacuna/framework/train/unknown_tokens.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/nn/memory_report.hpp"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/neurons.hpp"

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

// Parameters that are not trained.
int64_t frozen_numel(const Module& model) {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!parameter->trainable) total += parameter->numel();
  }
  return total;
}

// Bytes of a text file up to its last line end.
int64_t whole_lines(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const size_t end = text.rfind('\n');
  return end == std::string::npos ? 0 : static_cast<int64_t>(end) + 1;
}

// `data` is the split's.
void add_unknown(const std::string& split, const Dataset& data, Config& summary) {
  const double unknown = share_of_unknown(data);
  if (!std::isnan(unknown)) summary.set(split + "_unknown_tokens", unknown);
}

void add_evaluation(const std::string& split, const std::optional<Evaluation>& result,
                    const LossFunction& loss, const std::shared_ptr<const Dataset>& data,
                    Config& summary) {
  if (!result) return;
  if (loss.has_accuracy()) summary.set(split + "_accuracy", result->accuracy);
  if (!std::isnan(result->top5_accuracy)) {
    summary.set(split + "_top5_accuracy", result->top5_accuracy);
  }
  for (const auto& [name, value] : regression_results(*result)) {
    summary.set(split + "_" + name, value);
  }
  summary.set(split + "_loss", result->loss);
  const double perplexity = std::exp(result->loss);
  if (loss.has_token_labels() && std::isfinite(perplexity)) {
    summary.set(split + "_perplexity", perplexity);
  }
  const double bits = bits_per_character(result->loss, *data);
  if (!std::isnan(bits)) summary.set(split + "_bits_per_character", bits);
  add_unknown(split, *data, summary);
}

// Of one example, with all weights and with those that there were.
void add_flops(const Experiment& e, const RunState& state, Config& summary) {
  const Flops flops = count_flops(e.rows, [](const Parameter& p) { return p.pattern()->nnz(); });
  const Flops dense = count_flops(e.rows, [](const Parameter& p) { return p.numel(); });
  const auto set = [&](const char* key, double value) {
    summary.set(key, static_cast<int64_t>(std::llround(value)));
  };
  set("inference_flops", flops.forward);
  set("dense_inference_flops", dense.forward);
  if (state.training_flops && state.examples > 0) {
    set("training_flops", *state.training_flops / static_cast<double>(state.examples));
  }
  set("dense_training_flops", dense.training);
}

}  // namespace

RunReporter::RunReporter(const Experiment& experiment, const RunState& state,
                         const RunFolder& folder, ProgressStyle style)
    : experiment_(experiment),
      state_(state),
      is_writing_(experiment.is_first()),
      metrics_path_(folder.metrics_path()),
      summary_path_(folder.summary_path()),
      folder_(folder.path()),
      masks_(experiment, folder.path()),
      progress_(style) {}

// A file that is shorter than at the checkpoint has lost lines, or the end of one, in a crash of
// the machine.
void RunReporter::open_metrics(int64_t bytes) {
  begin_window();
  if (!is_writing_) return;
  metrics_ = std::make_unique<JsonLines>(metrics_path_);
  if (metrics_->size() != bytes) {
    int64_t keep = bytes;
    if (metrics_->size() < bytes) {
      keep = whole_lines(metrics_path_);
      log_warning("'" + metrics_path_ +
                  "' has lost events: it is shorter than it was at the checkpoint");
    }
    metrics_.reset();
    truncate_file(metrics_path_, keep);
    metrics_ = std::make_unique<JsonLines>(metrics_path_);
  }
  masks_.go_on_from(state_.step);
  if (experiment_.train.tensorboard) tensorboard_ = std::make_unique<TensorBoard>(folder_);
  if (state_.step == 0) record_masks();
}

void RunReporter::write(const Config& event) {
  metrics_->write(event);
  if (tensorboard_ != nullptr) tensorboard_->write(event);
}

void RunReporter::record_masks() {
  const std::optional<std::string> file = masks_.write(state_.step);
  if (file && tensorboard_ != nullptr) tensorboard_->write_masks(*file);
}

void RunReporter::count_step(const TrainingSums& step, double seconds) {
  window_seconds_ += seconds;
  window_examples_ += step.examples;
  ++window_steps_;
}

double RunReporter::epochs_done() const {
  return static_cast<double>(state_.step) / static_cast<double>(experiment_.steps_per_epoch());
}

// The keys that the events of all splits have in common. Regression has no accuracy.
Config RunReporter::event(const char* split, double loss, double accuracy) const {
  Config event = Config::map(
      {{"step", state_.step}, {"epoch", epochs_done()}, {"split", split}, {"loss", loss}});
  if (experiment_.loss.has_accuracy()) event.set("accuracy", accuracy);
  event.set("lr", experiment_.optimizer->lr());
  return event;
}

// What the header and the end of a run say: of the weights that are to be sparse, where there are
// some.
double RunReporter::density() const {
  int64_t nnz = 0, numel = 0;
  if (experiment_.sparsity != nullptr) {
    for (const ParameterPtr& parameter : experiment_.sparsity->sparse_parameters()) {
      nnz += parameter->pattern()->nnz();
      numel += parameter->numel();
    }
  }
  if (numel == 0) nnz = experiment_.nnz(), numel = experiment_.numel();
  return static_cast<double>(nnz) / static_cast<double>(numel);
}

ProgressReport RunReporter::progress_report(const TrainingSums& sums, double rate) const {
  const LossFunction& loss = experiment_.loss;
  return {
      .step = state_.step,
      .total_steps = experiment_.total_steps(),
      .epoch = epochs_done(),
      .loss = sums.mean_loss(),
      .accuracy = loss.has_accuracy() ? sums.accuracy() : std::numeric_limits<double>::quiet_NaN(),
      .density = density(),
      .examples_per_second = rate};
}

void RunReporter::begin_window() {
  window_seconds_ = 0.0;
  window_examples_ = window_steps_ = 0;
  const Communicator* job = experiment_.communicator();
  if (job == nullptr) return;
  window_sent_ = job->bytes_sent();
  window_gathered_ = job->bytes_gathered();
  window_waited_ = experiment_.parallel->seconds_waited();
}

// What this process has sent in a step, on average, and has waited for the others.
void RunReporter::add_messages(Config& training) const {
  const Communicator* job = experiment_.communicator();
  if (job == nullptr) return;
  const int64_t steps = std::max<int64_t>(window_steps_, 1);
  training.set("bytes_sent", (job->bytes_sent() - window_sent_) / steps);
  training.set("statistics_bytes_sent", (job->bytes_gathered() - window_gathered_) / steps);
  training.set("wait_seconds", (experiment_.parallel->seconds_waited() - window_waited_) /
                                   static_cast<double>(steps));
}

void RunReporter::report_training() {
  if (!is_writing_) return;
  const double rate = ratio(window_examples_, window_seconds_);
  Config training = event("train", state_.window.mean_loss(), state_.window.accuracy());
  training.set("examples_per_second", rate);
  training.set("seconds", state_.train_seconds);
  add_messages(training);
  if (experiment_.sparsity != nullptr) {
    Config sparsity = Config::map();
    for (const ParameterPtr& parameter : experiment_.sparsity->parameters()) {
      sparsity.set(parameter->name(),
                   Config::map({{"target", experiment_.sparsity->target_sparsity(*parameter)},
                                {"actual", 1.0 - parameter->pattern()->density()}}));
    }
    training.set("sparsity", sparsity);
  }
  write(training);
  progress_.report(progress_report(state_.window, rate));
  begin_window();
}

void RunReporter::report_mask_updates() {
  if (experiment_.sparsity == nullptr || !is_writing_) return;
  if (masks_.is_due(state_.step)) record_masks();
  for (const MaskUpdate& update : experiment_.sparsity->last_update()) {
    Config line = Config::map({{"step", state_.step},
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
    if (update.relative_error && std::isfinite(*update.relative_error)) {
      line.set("relative_error", *update.relative_error);
      log_info(fmt::format("{}: pruned to a sparsity of {:.4g}, relative output error {:.4g}",
                           update.parameter, update.actual_sparsity, *update.relative_error));
    }
    for (const std::string& message : update.messages) log_warning(message);
    write(line);
  }
}

void RunReporter::report_evaluation(const char* split, const Evaluation& result, double seconds) {
  if (!is_writing_) return;
  Config evaluation = event(split, result.loss, result.accuracy);
  const bool has_top5 = experiment_.loss.has_top5();
  if (has_top5) evaluation.set("top5_accuracy", result.top5_accuracy);
  if (std::isfinite(result.perplexity)) evaluation.set("perplexity", result.perplexity);
  for (const auto& [name, value] : regression_results(result)) evaluation.set(name, value);
  if (!std::isnan(result.bits_per_character)) {
    evaluation.set("bits_per_character", result.bits_per_character);
  }
  if (!std::isnan(result.unknown_tokens)) evaluation.set("unknown_tokens", result.unknown_tokens);
  evaluation.set("examples_per_second", ratio(result.examples, seconds));
  evaluation.set("seconds", state_.train_seconds);
  write(evaluation);
  std::string line =
      fmt::format("epoch {:.2f}  {} loss {}", epochs_done(), split, rounded(result.loss));
  if (experiment_.loss.has_accuracy()) {
    line += fmt::format("  accuracy {:.2f} %", 100.0 * result.accuracy);
  }
  if (!std::isnan(result.r2)) line += fmt::format("  R² {:.4f}", result.r2);
  if (!std::isnan(result.rmse)) line += "  RMSE " + rounded(result.rmse);
  if (has_top5) line += fmt::format("  top-5 {:.2f} %", 100.0 * result.top5_accuracy);
  if (std::isfinite(result.perplexity))
    line += fmt::format("  perplexity {:.4g}", result.perplexity);
  if (!std::isnan(result.bits_per_character)) {
    line += "  " + bits_in_words(result.bits_per_character, result.unknown_tokens);
  }
  progress_.report_evaluation(state_.step, line);
}

void RunReporter::show_progress(const TrainingSums& step) {
  if (!is_writing_) return;
  progress_.tick([&] {
    return progress_report(step, static_cast<double>(state_.examples) / state_.train_seconds);
  });
}

void RunReporter::write_summary(SummaryFile file) {
  if (!is_writing_) return;
  Config summary = Config::map();
  const DataSplits& data = experiment_.data;
  add_evaluation("test", state_.test, experiment_.loss, data.test, summary);
  add_evaluation("validation", state_.validation, experiment_.loss, data.validation, summary);
  add_unknown("train", *data.train, summary);
  for (const char* key : {"test_bits_per_character", "validation_bits_per_character"}) {
    if (summary.has(key) && !summary.has("bits_per_character")) {
      summary.set("bits_per_character", summary.required<double>(key));
    }
  }
  add_best(summary);
  const bool within_epoch = state_.epoch.examples > 0;
  summary.set("train_loss", within_epoch ? state_.epoch.mean_loss() : state_.last_epoch_loss);
  summary.set("epochs", epochs_done());
  summary.set("steps", state_.step);
  summary.set("train_seconds", state_.train_seconds);
  summary.set("examples_per_second", ratio(state_.examples, state_.train_seconds));
  summary.set("peak_rss_bytes", peak_rss_bytes());
  summary.set("numel", experiment_.numel());
  summary.set("nnz", experiment_.nnz());
  add_sparsity(summary);
  add_flops(experiment_, state_, summary);
  if (const int64_t frozen = frozen_numel(*experiment_.model); frozen > 0) {
    summary.set("frozen", frozen);
  }
  int64_t bytes = 0;
  for (const ParameterPtr& parameter : experiment_.model->parameters()) bytes += parameter->bytes();
  summary.set("parameter_bytes", bytes);
  summary.set("dense_parameter_bytes", dense_bytes(*experiment_.model));
  summary.set("bytes_per_nonzero", bytes_per_nonzero(bytes, experiment_.nnz()));
  summary.set("parameters", memory_report(*experiment_.model));
  if (const auto counts = count_neurons(*experiment_.model)) {
    summary.set("neurons", counts->neurons);
    summary.set("neurons_on_path", counts->on_path);
  }
  summary.set("seed", static_cast<int64_t>(experiment_.train.seed));
  summary.set("threads", num_threads());
  if (experiment_.parallel != nullptr) {
    summary.set("processes", experiment_.parallel->processes());
    summary.set("shards", experiment_.parallel->shards());
  }
  summary.set("instruction_set", active_instruction_set());
  summary.set("version", kVersion);
  summary.set("arithmetic_revision", kArithmeticRevision);
  summary.set("stopped_early", state_.stopping.has_stopped());
  summary_ = summary;
  if (file == SummaryFile::Kept) {
    try {
      const Config kept = load_yaml(summary_path_);
      if (kept.is_map()) summary_ = kept;
    } catch (const ConfigError&) {  // damaged: it stays as it is, and what was counted now is told
    }
    return;
  }
  record_masks();  // wherever a run ends: one stopped early, or made shorter
  write_file_atomically(summary_path_, summary.to_json_indented());
  progress_.clear();
  for (const std::string& line : memory_lines(*experiment_.model)) log_detail(line);
}

// The parameters that an algorithm makes sparse, where there are some.
void RunReporter::add_sparsity(Config& summary) const {
  if (experiment_.sparsity == nullptr) return;
  int64_t numel = 0, nnz = 0;
  for (const ParameterPtr& parameter : experiment_.sparsity->sparse_parameters()) {
    numel += parameter->numel();
    nnz += parameter->pattern()->nnz();
  }
  if (numel == 0) return;
  summary.set("sparse_numel", numel);
  summary.set("sparse_nnz", nnz);
}

void RunReporter::add_best(Config& summary) const {
  if (!state_.best) return;
  summary.set("best_step", state_.best->step);
  summary.set("best_epoch", static_cast<double>(state_.best->step) /
                                static_cast<double>(experiment_.steps_per_epoch()));
  const DataSplits& data = experiment_.data;
  add_evaluation("best_test", state_.best->test, experiment_.loss, data.test, summary);
  add_evaluation("best_validation", state_.best->validation, experiment_.loss, data.validation,
                 summary);
}

}  // namespace lacuna
