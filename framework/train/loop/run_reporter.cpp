#include "lacuna/framework/train/loop/run_reporter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {
namespace {

double ratio(int64_t count, double seconds) {
  return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
}

// Bytes of a text file up to its last line end.
int64_t whole_lines(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const size_t end = text.rfind('\n');
  return end == std::string::npos ? 0 : static_cast<int64_t>(end) + 1;
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
  if (watcher_) watcher_(event);
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

// The content of the header and the end of a run: of the weights that are to be sparse, if there
// are some.
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

// A line for each of the text's.
void RunReporter::report_sample(const std::string& text) {
  sample_ = text;
  progress_.clear();
  log_info(fmt::format("epoch {}  sample", epochs_in_words(epochs_done())));
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    log_info("  | " + printable(text.substr(begin, end - begin), text.size()));
    begin = end + 1;
  }
}

void RunReporter::report_evaluation(const char* split, const Evaluation& result, double seconds) {
  if (!is_writing_) return;
  Config evaluation = event(split, result.loss, result.accuracy);
  const bool has_top5 = experiment_.loss.has_top5();
  if (has_top5) evaluation.set("top5_accuracy", result.top5_accuracy);
  if (std::isfinite(result.perplexity)) evaluation.set("perplexity", result.perplexity);
  for (const auto& [name, value] : other_results(result)) evaluation.set(name, value);
  if (!std::isnan(result.bits_per_character)) {
    evaluation.set("bits_per_character", result.bits_per_character);
  }
  if (!std::isnan(result.unknown_tokens)) evaluation.set("unknown_tokens", result.unknown_tokens);
  evaluation.set("examples_per_second", ratio(result.examples, seconds));
  evaluation.set("seconds", state_.train_seconds);
  if (!sample_.empty()) evaluation.set("sample", clean_utf8(std::exchange(sample_, "")));
  write(evaluation);
  std::string line = fmt::format("epoch {}  {} loss {}", epochs_in_words(epochs_done()), split,
                                 rounded(result.loss));
  if (experiment_.loss.has_accuracy()) {
    line += fmt::format("  accuracy {:.2f} %", 100.0 * result.accuracy);
  }
  if (const std::string precisions = precisions_in_words(result); !precisions.empty()) {
    line += "  " + precisions;
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

}  // namespace lacuna
