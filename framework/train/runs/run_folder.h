// RunFolder: the folder with a run's files, and the right to write to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {

/// Selects one of a run's checkpoints.
enum class KeptCheckpoint { Best, Last };

/// A run's folder: config.yaml, metrics.jsonl, log.txt, checkpoints/, summary.json.
///
/// config.yaml is the first file in it: a folder without it is not a run. Only one process at a
/// time may train in it; copies of a RunFolder share that right, which ends at the latest with the
/// process.
class RunFolder {
 public:
  /// *Errors:* StateError if `path` exists and is not an empty folder: nothing is ever overwritten.
  static void require_unused(const std::string& path);
  /// Creates the folder, with parents, and its config.yaml. *Errors:* as `require_unused`;
  /// StateError if it cannot be created or written.
  static RunFolder create(const std::string& path, const std::string& config_yaml);
  /// The folder of a run to be resumed; incomplete files of a killed process are removed. *Errors:*
  /// StateError if it is missing or is not a run, and while another process trains in it.
  static RunFolder open(const std::string& path);

  /// A folder that another process writes, only for the names of its files. Nothing is read or
  /// locked.
  static RunFolder of_another(const std::string& path) { return RunFolder(path); }

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string summary_path() const { return path_ + "/summary.json"; }
  /// Whether it exists and can be read.
  bool has_summary() const;
  std::string checkpoint_path(int64_t step) const;
  std::string best_path() const { return checkpoints_path() + "/best.h5"; }

  /// Steps with a checkpoint, newest first.
  std::vector<int64_t> checkpoint_steps() const;
  /// The newest good checkpoint; nothing if there are no checkpoints. Newer ones that are damaged
  /// are logged as warnings. *Errors:* CheckpointError, with a list of those tried, if all are
  /// damaged.
  std::optional<CheckpointFile> newest_good_checkpoint() const;
  /// Renames the checkpoints that are newer than `good` (which are damaged) to NAME.damaged.
  void set_aside_newer_than(const std::string& good) const;

  /// Writes the checkpoint, then prunes. *Errors:* StateError.
  void save_checkpoint(const Checkpoint& checkpoint, int64_t keep_last) const;
  /// Removes all checkpoints except the newest `keep_last`, at least 1 (and best.h5).
  void prune_checkpoints(int64_t keep_last) const;

 private:
  class Lock;
  friend CheckpointFile find_checkpoint(const std::string& file_or_run_folder, KeptCheckpoint kept);

  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  void lock();

  std::string path_;
  std::shared_ptr<Lock> lock_;  // null: read-only
};

/// Refuses an output `path` that is a file of a run: its configuration, log, metrics, summary or
/// records, or a file in its folders. *Errors:* ConfigError that begins with `option`.
void require_no_file_of_a_run(const std::string& option, const std::string& path);

/// A checkpoint named by a user: the file itself, or one of a run folder: best.h5 if requested and
/// if it is the run's best (`fitting_best`), else the newest good one. *Errors:* CheckpointError.
CheckpointFile find_checkpoint(const std::string& file_or_run_folder,
                               KeptCheckpoint kept = KeptCheckpoint::Last);

}  // namespace lacuna
