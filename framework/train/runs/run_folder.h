// RunFolder: where a run keeps its files, and who may write there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {

/// Which of a run's checkpoints is meant.
enum class KeptCheckpoint { Best, Last };

/// A run's folder: config.yaml, metrics.jsonl, log.txt, checkpoints/, summary.json.
///
/// config.yaml is the first file in it: a folder without one holds no run. One process at a time
/// may train in it; copies of a RunFolder share that right, which ends with the process at latest.
class RunFolder {
 public:
  /// *Errors:* StateError when there is something at `path` but an empty folder: nothing is ever
  /// overwritten.
  static void require_unused(const std::string& path);
  /// Makes the folder, with parents, and its config.yaml. *Errors:* as `require_unused`; StateError
  /// when it cannot be made or written.
  static RunFolder create(const std::string& path, const std::string& config_yaml);
  /// The folder of a run that is to go on; what a killed process left half-written is removed.
  /// *Errors:* StateError when it is missing or holds no run, and while another process trains in
  /// it.
  static RunFolder open(const std::string& path);

  /// A folder that another process writes: for its names. Nothing is looked at, nothing locked.
  static RunFolder of_another(const std::string& path) { return RunFolder(path); }

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string summary_path() const { return path_ + "/summary.json"; }
  /// Whether there is one, and it can be read.
  bool has_summary() const;
  std::string checkpoint_path(int64_t step) const;
  std::string best_path() const { return checkpoints_path() + "/best.h5"; }

  /// Steps of which there are checkpoints, newest first.
  std::vector<int64_t> checkpoint_steps() const;
  /// The newest checkpoint that is whole; nothing when there are none at all. Newer ones that are
  /// damaged are logged as warnings. *Errors:* CheckpointError, listing what was tried, when all
  /// are damaged.
  std::optional<CheckpointFile> newest_good_checkpoint() const;
  /// Renames the checkpoints that are newer than `good` (which are damaged) to NAME.damaged.
  void set_aside_newer_than(const std::string& good) const;

  /// Writes the checkpoint, then prunes. *Errors:* StateError.
  void save_checkpoint(const Checkpoint& checkpoint, int64_t keep_last) const;
  /// Removes all checkpoints but the newest `keep_last`, at least 1 (and best.h5).
  void prune_checkpoints(int64_t keep_last) const;

 private:
  class Lock;
  friend CheckpointFile find_checkpoint(const std::string& file_or_run_folder, KeptCheckpoint kept);

  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }
  void lock();

  std::string path_;
  std::shared_ptr<Lock> lock_;  // null: only for looking
};

/// Where `path`, which something is to be written to, is one of the files that make up a run: its
/// configuration, log, metrics, summary or records, or what lies in its folders. *Errors:*
/// ConfigError that begins with `option`.
void require_no_file_of_a_run(const std::string& option, const std::string& path);

/// A checkpoint named by a user: the file itself, or one of a run folder: best.h5 where that is
/// asked for and it is the run's best (`fitting_best`), else the newest good one.
/// *Errors:* CheckpointError.
CheckpointFile find_checkpoint(const std::string& file_or_run_folder,
                               KeptCheckpoint kept = KeptCheckpoint::Last);

}  // namespace lacuna
