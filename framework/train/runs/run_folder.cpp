#include "lacuna/framework/train/runs/run_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/foreign_model.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/runs/best_checkpoint.hpp"

namespace lacuna {

namespace fs = std::filesystem;

// A lock on the folder itself, which the system lets go of when the process ends in whatever way.
class RunFolder::Lock {
 public:
  explicit Lock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // On a file system without locks, there is no lock.
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    throw StateError("another process is training in the run folder '" + path +
                     "'; wait until it ends, or stop it");
  }
  ~Lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

void RunFolder::lock() { lock_ = std::make_shared<Lock>(path_); }

namespace {

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw StateError("cannot make the run folder '" + path + "': " + error.message());
}

}  // namespace

void RunFolder::require_unused(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (!fs::is_symlink(path, error)) return;
    throw StateError("the run folder '" + path + "' is a link to '" +
                     fs::read_symlink(path, error).string() +
                     "', which does not exist; make that folder, or choose another one with "
                     "--run-dir");
  }
  if (!fs::is_directory(path, error)) {
    throw StateError("the run folder '" + path +
                     "' is a file; choose another folder with --run-dir");
  }
  if (fs::exists(path + "/config.yaml", error)) {
    throw StateError("the run folder '" + path +
                     "' holds a run already; continue it with `lacuna train --resume --run-dir " +
                     shell_word(path) + "`, or choose another folder with --run-dir");
  }
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".config.yaml.tmp-")) continue;  // of a process that was killed early
    throw StateError("the folder '" + path + "' holds no run, but other files ('" + name +
                     "'); choose another one with --run-dir");
  }
}

RunFolder RunFolder::create(const std::string& path, const std::string& config_yaml) {
  RunFolder folder(path);
  require_unused(path);
  make_folder(path);
  fault_point("run.after_folder");
  folder.lock();
  require_unused(path);
  remove_temporary_files(path);
  write_file_atomically(folder.config_path(), config_yaml);
  fault_point("run.after_config");
  make_folder(folder.checkpoints_path());
  return folder;
}

RunFolder RunFolder::open(const std::string& path) {
  RunFolder folder(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw StateError("there is nothing to resume: the run folder '" + path +
                     "' does not exist; start the run without --resume");
  }
  if (!fs::exists(folder.config_path(), error)) {
    throw StateError("there is nothing to resume: '" + path +
                     "' has no config.yaml of a run; start the run without --resume");
  }
  folder.lock();
  make_folder(folder.checkpoints_path());
  remove_temporary_files(path);
  remove_temporary_files(folder.checkpoints_path());
  return folder;
}

std::string RunFolder::checkpoint_path(int64_t step) const {
  return fmt::format("{}/step-{:010}.h5", checkpoints_path(), step);
}

std::vector<int64_t> RunFolder::checkpoint_steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !name.ends_with(".h5")) continue;
    int64_t step = 0;
    std::from_chars(name.data() + 5, name.data() + name.size() - 3, step);
    if (step >= 0 && entry.path() == checkpoint_path(step)) steps.push_back(step);
  }
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

bool RunFolder::has_summary() const {
  std::error_code error;
  if (!fs::is_regular_file(summary_path(), error)) return false;
  std::ifstream stream(summary_path(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto summary = parse_json(text);
  return summary && summary->is_map();
}

std::optional<CheckpointFile> RunFolder::newest_good_checkpoint() const {
  std::vector<std::string> refused;
  for (const int64_t step : checkpoint_steps()) {
    try {
      CheckpointFile file(checkpoint_path(step));
      for (const std::string& line : refused) log_warning(line + "; going back to an older one");
      return file;
    } catch (const CheckpointError& error) {
      refused.emplace_back(error.what());
    }
  }
  if (refused.empty()) return std::nullopt;
  throw CheckpointError("none of the checkpoints in '" + path_ +
                        "' can be used: " + join(refused, "; "));
}

void RunFolder::set_aside_newer_than(const std::string& good) const {
  for (const int64_t step : checkpoint_steps()) {
    const std::string path = checkpoint_path(step);
    if (path == good) return;
    std::error_code error;
    fs::rename(path, path + ".damaged", error);
    if (error) {
      throw StateError("cannot set the damaged '" + path + "' aside: " + error.message());
    }
  }
}

void RunFolder::save_checkpoint(const Checkpoint& checkpoint, int64_t keep_last) const {
  write_checkpoint(checkpoint_path(checkpoint.step), checkpoint);
  prune_checkpoints(keep_last);
}

void RunFolder::prune_checkpoints(int64_t keep_last) const {
  const std::vector<int64_t> steps = checkpoint_steps();
  for (size_t i = static_cast<size_t>(keep_last); i < steps.size(); ++i) {
    std::error_code ignored;  // an old file that stays does no harm
    fs::remove(checkpoint_path(steps[i]), ignored);
  }
  fault_point("checkpoint.after_prune");
}

void require_no_file_of_a_run(const std::string& option, const std::string& path) {
  constexpr std::array kFiles{"config.yaml",   "log.txt",       "metrics.jsonl",
                              "summary.json",  "changes.jsonl", "prune.json",
                              "shrink.json",   "quantize.json", "confusion.json",
                              "started.jsonl", "profile.json",  "profile_trace.json"};
  constexpr std::array kFolders{"checkpoints", "masks", "tensorboard"};
  std::error_code unknown;
  const fs::path file = fs::weakly_canonical(path, unknown), folder = file.parent_path();
  const auto is_run = [&](const fs::path& there) {
    return fs::exists(there / "config.yaml", unknown) && fs::exists(there / "checkpoints", unknown);
  };
  const bool is_own = std::ranges::find(kFiles, file.filename()) != kFiles.end() && is_run(folder);
  const bool is_below = std::ranges::find(kFolders, folder.filename()) != kFolders.end() &&
                        is_run(folder.parent_path());
  if (!is_own && !is_below) return;
  throw ConfigError(option + " '" + path + "' is among the files of the run '" +
                    (is_own ? folder : folder.parent_path()).string() + "'; give another name");
}

CheckpointFile find_checkpoint(const std::string& path, KeptCheckpoint kept) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return CheckpointFile(path);
  const RunFolder folder(path);
  if (kept == KeptCheckpoint::Best) {
    if (auto best = fitting_best(folder)) return *best;
  }
  const std::optional<CheckpointFile> newest = folder.newest_good_checkpoint();
  if (!newest) {
    if (const std::string words = foreign_model(path); !words.empty()) {
      throw CheckpointError("'" + path + "' " + words);
    }
    throw CheckpointError("the folder '" + path +
                          "' holds no checkpoints; give a checkpoint file, or the folder of a run "
                          "(`lacuna import` makes one of other tools' weights)");
  }
  return *newest;
}

}  // namespace lacuna
