// Runs of the program as several processes, started by mpirun on this machine.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {

/// `mpirun …`, more processes than cores where there are fewer.
inline Ended run_processes(const std::vector<std::string>& words, ProcessOptions options = {}) {
  std::vector<std::string> all{"mpirun", "--oversubscribe",     "--bind-to", "none",
                               "--mca",  "mpi_yield_when_idle", "1"};
  all.insert(all.end(), words.begin(), words.end());
  options.in_child = [all] {
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    std::vector<char*> argv;
    for (const std::string& word : all) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(LACUNA_MPIRUN, argv.data());
    ::_exit(127);
  };
  return run_lacuna({}, options);
}

/// `mpirun -np N lacuna …`. `environment` holds "NAME=VALUE" for these alone, not for the launcher.
inline Ended run_job(int processes, const std::vector<std::string>& arguments,
                     const ProcessOptions& options = {},
                     const std::vector<std::string>& environment = {}) {
  std::vector<std::string> words{"-np", std::to_string(processes)};
  for (const std::string& variable : environment) words.insert(words.end(), {"-x", variable});
  words.push_back(LACUNA_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_processes(words, options);
}

/// How often a part occurs in a text.
inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A folder of runs of one configuration by different numbers of processes.
class JobFixture : public RunFixture {
 protected:
  /// The arguments of a new run with so many shards; `more` behind them.
  std::vector<std::string> arguments(const std::string& name,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> list{"train", config(),         "--run-dir", run_dir(name),
                                  "--set", "train.shards=8", "--set",     "train.threads=1"};
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  /// One process without a launcher, which says 0, or several.
  Ended run(int processes, const std::string& name,
            const std::vector<std::string>& more = {}) const {
    const std::vector<std::string> all = arguments(name, more);
    return processes == 0 ? run_lacuna(all) : run_job(processes, all);
  }
  /// What the last checkpoints of two runs do not share.
  std::vector<std::string> different(int64_t step, const std::string& a,
                                     const std::string& b) const {
    return differences(read_checkpoint(checkpoint(step, a)).state,
                       read_checkpoint(checkpoint(step, b)).state);
  }
};

}  // namespace lacuna
