// Runs of the program as several processes, started by mpirun on this machine.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {

/// `mpirun -np N lacuna …`, more processes than cores where there are fewer. `environment` holds
/// "NAME=VALUE" for these alone, not for the launcher.
inline Ended run_job(int processes, const std::vector<std::string>& arguments,
                     ProcessOptions options = {},
                     const std::vector<std::string>& environment = {}) {
  std::vector<std::string> all{
      "mpirun", "--oversubscribe",        "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
      "-np",    std::to_string(processes)};
  for (const std::string& variable : environment) all.insert(all.end(), {"-x", variable});
  all.push_back(LACUNA_PROGRAM);
  all.insert(all.end(), arguments.begin(), arguments.end());
  options.in_child = [all] {
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    std::vector<char*> argv;
    for (const std::string& argument : all) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(LACUNA_MPIRUN, argv.data());
    ::_exit(127);
  };
  return run_lacuna({}, options);
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
