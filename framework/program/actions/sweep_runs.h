// Trains a run for each combination of values and each seed: `lacuna sweep`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"

namespace lacuna {

struct SweepRequest {
  std::string config_path;
  Config config = {};  ///< the same as a tree; used if there is no path
  /// "path=value,value,…", "path=log:LOW..HIGH" or a file of named settings, each
  /// (docs/reference/commands.md).
  std::vector<std::string> over = {};
  std::vector<std::string> overrides = {};  ///< "key=value", for all runs
  std::string run_dir;                      ///< the folder for the runs' folders
  int64_t seeds = 1;                        ///< runs of each combination
  int64_t jobs = 1;                         ///< runs at the same time
  int64_t random = 0;                       ///< how many combinations are drawn; 0: all are run
  int64_t random_seed = 0;                  ///< of the draws
  /// The lacuna program that trains the runs: its file, and arguments before those of the command.
  /// Empty: the file of this process, which must be that program.
  std::vector<std::string> program = {};
};

struct SweepResult {
  std::string text = {};               ///< the table that `lacuna sweep` prints
  std::string page = {};               ///< the file of the runs' page; empty without runs
  std::vector<std::string> runs = {};  ///< their folders
  int failed = 0;                      ///< runs that failed; the log names them
  int signal = 0;                      ///< the signal that ended it: SIGINT or SIGTERM; 0: none
};

/// Trains the runs, each in its own process, and continues those that an earlier call with the same
/// settings has started. SIGINT and SIGTERM are forwarded to the runs, which end after a
/// checkpoint. *Errors:* ConfigError, also for an invalid configuration of any run, before the
/// first one starts; StateError; DataError.
SweepResult sweep_runs(const SweepRequest& request);

}  // namespace lacuna
