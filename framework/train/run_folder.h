// RunFolder: where a run keeps its files. docs/run-folder.md is the layout.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/file_system.h"

namespace lacuna {

/// A run's folder: config.yaml, metrics.jsonl, log.txt, checkpoints/, summary.json.
class RunFolder {
 public:
  /// Makes the folder, with parents. *Errors:* StateError when it exists and is not empty (nothing
  /// is ever overwritten), or cannot be made or written.
  static RunFolder create(const std::string& path);
  /// *Errors:* StateError when it is missing or holds no run.
  static RunFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string log_path() const { return path_ + "/log.txt"; }
  std::string summary_path() const { return path_ + "/summary.json"; }
  std::string checkpoint_path(int64_t step) const;
  std::string best_path() const { return path_ + "/checkpoints/best.h5"; }

  /// Steps of which there are checkpoints, newest first.
  std::vector<int64_t> checkpoint_steps() const;
  /// The newest checkpoint that is whole, and what is wrong with each newer one.
  /// *Errors:* CheckpointError when there is none; lists what was tried.
  std::string newest_good_checkpoint(std::vector<std::string>& refused) const;

  /// Writes the checkpoint, then removes all but the newest `keep_last`. *Errors:* StateError.
  void save_checkpoint(const Checkpoint& checkpoint, int64_t keep_last) const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// A checkpoint named by a user: the file itself, or the newest good one of a run folder.
/// *Errors:* CheckpointError.
std::string find_checkpoint(const std::string& file_or_run_folder);

}  // namespace lacuna
