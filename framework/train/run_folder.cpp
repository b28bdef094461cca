#include "lacuna/framework/train/run_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/fault.h"
#include "lacuna/framework/core/names.h"

namespace lacuna {

namespace fs = std::filesystem;

RunFolder RunFolder::create(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) && !(fs::is_directory(path, error) && fs::is_empty(path, error))) {
    throw StateError("the run folder '" + path +
                     "' exists already; continue it with --resume, or choose another with "
                     "--run-dir");
  }
  fs::create_directories(path + "/checkpoints", error);
  if (error) {
    throw StateError("cannot make the run folder '" + path + "': " + error.message());
  }
  return RunFolder(path);
}

RunFolder RunFolder::open(const std::string& path) {
  RunFolder folder(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw StateError("there is nothing to resume: the run folder '" + path + "' does not exist");
  }
  if (!fs::exists(folder.config_path(), error)) {
    throw StateError("there is nothing to resume: '" + path + "' holds no config.yaml of a run");
  }
  return folder;
}

std::string RunFolder::checkpoint_path(int64_t step) const {
  char name[32];
  std::snprintf(name, sizeof name, "step-%010lld.h5", static_cast<long long>(step));
  return path_ + "/checkpoints/" + name;
}

std::vector<int64_t> RunFolder::checkpoint_steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ + "/checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !name.ends_with(".h5")) continue;
    int64_t step = 0;
    const auto parsed = std::from_chars(name.data() + 5, name.data() + name.size() - 3, step);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() - 3) {
      steps.push_back(step);
    }
  }
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

std::string RunFolder::newest_good_checkpoint(std::vector<std::string>& refused) const {
  for (const int64_t step : checkpoint_steps()) {
    const std::string path = checkpoint_path(step);
    try {
      verify_checkpoint(path);
      return path;
    } catch (const CheckpointError& error) {
      refused.emplace_back(error.what());
    }
  }
  throw CheckpointError("the run folder '" + path_ + "' holds no good checkpoint" +
                        (refused.empty() ? "" : ": " + join(refused, "; ")));
}

void RunFolder::save_checkpoint(const Checkpoint& checkpoint, int64_t keep_last) const {
  write_checkpoint(checkpoint_path(checkpoint.step), checkpoint);
  const std::vector<int64_t> steps = checkpoint_steps();
  for (size_t i = static_cast<size_t>(keep_last); i < steps.size(); ++i) {
    // The one just written counts as the newest even when a run goes on from an older one.
    if (steps[i] == checkpoint.step) continue;
    std::error_code ignored;  // an old file that stays does no harm
    fs::remove(checkpoint_path(steps[i]), ignored);
  }
  fault_point("checkpoint.after_prune");
}

std::string find_checkpoint(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  std::vector<std::string> refused;
  return RunFolder::open(path).newest_good_checkpoint(refused);
}

}  // namespace lacuna
