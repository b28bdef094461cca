// RunReporter writes about a run: metrics, progress, log lines, the summary.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/records/tensorboard.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loop/dense_timing.hpp"
#include "lacuna/framework/train/loop/mask_recorder.hpp"
#include "lacuna/framework/train/loop/run_state.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

/// Whether summary.json is written, or one that is there already stays.
enum class SummaryFile { Written, Kept };

/// Writes into a run's folder, the log and the console what the experiment and the run's state,
/// both of which must outlive it, are at the moment. Of several processes the first one writes: in
/// the others every call does nothing. docs/reference/run-folder.md describes the files.
class RunReporter {
 public:
  RunReporter(const Experiment& experiment, const RunState& state, const RunFolder& folder,
              ProgressStyle style);

  /// Continues the metrics at the place that a checkpoint states: what was written after it is
  /// going to be written again, so it is cut off, masks and TensorBoard's events too. At the start
  /// of a run keeps the first masks. *Errors:* StateError.
  void open_metrics(int64_t bytes);
  /// Of the metrics so far, flushed to the disk: a checkpoint that names them must not outlive
  /// them. *Requires* open metrics, as all that writes events; 0 in the processes that write none.
  int64_t flushed_metrics_bytes() const {
    if (metrics_ == nullptr) return 0;
    metrics_->flush();
    return metrics_->size();
  }

  /// Called with each event that is written. Null: nobody.
  void watch(std::function<void(const Config& event)> watcher) { watcher_ = std::move(watcher); }

  /// The time that is left is reckoned from here.
  void begin() {
    if (is_writing_) progress_.begin(state_.step, experiment_.total_steps());
  }
  /// After each step, so that rates are known.
  void count_step(const TrainingSums& step, double seconds);
  /// The "train" event, of the state's window.
  void report_training();
  /// An "update" event for each mask that the last step has changed, and the masks themselves where
  /// this is a step to keep them.
  void report_mask_updates();
  /// A text of the model's: for the log, and for the event of the next evaluation.
  void report_sample(const std::string& text);
  void report_evaluation(const char* split, const Evaluation& result, double seconds);
  /// Rewrites the terminal's line, where there is one.
  void show_progress(const TrainingSums& step);
  /// Makes room for other text on the console.
  void clear() {
    if (is_writing_) progress_.clear();
  }
  /// What the summary compares the run's steps with; none: it does not.
  void set_dense_step(const std::optional<DenseStep>& dense) { dense_step_ = dense; }
  /// summary.json, the last masks, and where the memory went, for the log. *Errors:* StateError.
  void write_summary(SummaryFile file);
  /// What was written there. *Requires* that it was.
  const Config& summary() const { return summary_; }

 private:
  // Into metrics.jsonl, and TensorBoard's file where there is one.
  void write(const Config& event);
  void record_masks();
  double epochs_done() const;
  Config event(const char* split, double loss, double accuracy) const;
  double density() const;
  ProgressReport progress_report(const TrainingSums& sums, double rate) const;

  void begin_window();
  void add_messages(Config& training) const;
  void add_sparsity(Config& summary) const;
  void add_best(Config& summary) const;

  const Experiment& experiment_;
  const RunState& state_;
  bool is_writing_;
  std::string metrics_path_;
  std::string summary_path_;
  std::string folder_;
  std::unique_ptr<JsonLines> metrics_;
  MaskRecorder masks_;
  std::unique_ptr<TensorBoard> tensorboard_;  // null unless requested
  std::function<void(const Config& event)> watcher_;
  Progress progress_;
  Config summary_;
  std::optional<DenseStep> dense_step_;
  std::string sample_;  // that no event has had yet
  // Of the window, as far as this process has seen it.
  double window_seconds_ = 0.0;
  int64_t window_examples_ = 0;
  int64_t window_steps_ = 0;
  int64_t window_sent_ = 0, window_gathered_ = 0;  // bytes, as they were at its beginning
  double window_waited_ = 0.0;
};

}  // namespace lacuna
