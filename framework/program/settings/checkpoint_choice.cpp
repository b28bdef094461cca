#include "lacuna/framework/program/settings/checkpoint_choice.hpp"

#include <filesystem>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

void require_run_for_last(const std::string& path, bool last) {
  std::error_code error;
  if (!last || !std::filesystem::exists(path, error)) return;  // opening it reports the latter
  if (std::filesystem::is_directory(path, error)) return;
  throw ConfigError("--last is for a run folder, and selects its last checkpoint; '" + path +
                    "' is a file and is used itself: leave --last out, or give the run's folder");
}

CheckpointFile choose_checkpoint(const std::string& file_or_run_folder, bool last,
                                 const std::function<void(const std::string&)>& report_line) {
  require_run_for_last(file_or_run_folder, last);
  CheckpointFile file =
      find_checkpoint(file_or_run_folder, last ? KeptCheckpoint::Last : KeptCheckpoint::Best);
  const std::string best = file_or_run_folder + "/checkpoints/best.h5";
  std::error_code error;
  if (!std::filesystem::exists(best, error)) return file;
  const bool is_best = std::filesystem::equivalent(file.path(), best, error);
  if (report_line) {
    report_line("using " + file.path() +
                (is_best ? " (the best; --last selects the last)" : " (the last)"));
  }
  return file;
}

}  // namespace lacuna
