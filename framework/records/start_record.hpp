// started.jsonl of a run folder: when, where and by which command a run was begun or continued.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// One start of a process that trains a run.
struct RunStart {
  std::string time;     ///< "2026-11-26T00:46:00Z"
  std::string machine;  ///< the processor's name; empty if the system does not report it
  std::string command;  ///< as a shell takes it; empty where it is not known
  std::string version;  ///< of lacuna
  int64_t threads = 0;  ///< 0 where it is not known
};

/// Of this process, now.
RunStart start_of_process(int64_t threads);

/// Appends a line to started.jsonl in the folder. *Errors:* StateError when it cannot be written.
void append_start(const std::string& folder, const RunStart& start);

/// What started.jsonl tells, the first start first; lines that cannot be read are left out. Where
/// there is none, as in runs of earlier versions, the time of the first line in log.txt.
std::vector<RunStart> read_starts(const std::string& folder);

/// The command with each path of more than two names cut to its last two: "…/configs/mlp.yaml".
std::string with_short_paths(const std::string& command);

}  // namespace lacuna
