// Runs of the program as several processes, started by mpirun on this machine.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/program/runs.h"
#include "paths.h"
#include "temporary_folder.h"

namespace lacuna {

/// Runs another program than lacuna, from where jobs may be started: as any user, of processes of
/// one thread each that take turns where they are more than cores.
inline Ended run_starter(const char* program, std::vector<std::string> words,
                         ProcessOptions options) {
  // Each job has its own session folder: two that create the shared one at the same moment may
  // fail.
  const TemporaryFolder session;
  options.in_child = [program, words, folder = session.path()] {
    ::setenv("OMPI_MCA_orte_tmpdir_base", folder.c_str(), 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    // Without a look for networks that are not there, for a fifth of a second in each process.
    ::setenv("OMPI_MCA_pml", "^ucx,cm", 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(program, argv.data());
    ::_exit(127);
  };
  return run_lacuna({}, options);
}

/// What mpirun needs for more processes than cores.
inline const std::vector<std::string> kTakeTurns = {
    "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"};

/// `mpirun …`.
inline Ended run_processes(const std::vector<std::string>& words, ProcessOptions options = {}) {
  std::vector<std::string> all{"mpirun"};
  all.insert(all.end(), kTakeTurns.begin(), kTakeTurns.end());
  all.insert(all.end(), words.begin(), words.end());
  return run_starter(kMpirun, all, std::move(options));
}

/// `mpirun -np N lacuna …`. `environment` holds "NAME=VALUE" for these alone, not for the launcher.
inline Ended run_job(int processes, const std::vector<std::string>& arguments,
                     const ProcessOptions& options = {},
                     const std::vector<std::string>& environment = {}) {
  std::vector<std::string> words{"-np", std::to_string(processes)};
  for (const std::string& variable : environment) words.insert(words.end(), {"-x", variable});
  words.push_back(kProgram);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_processes(words, options);
}

/// The processes that a process has started.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry.path() / "stat");
    std::string pid, command, state;
    pid_t of = 0;
    stream >> pid >> command >> state >> of;
    if (of == parent) children.push_back(static_cast<pid_t>(std::stol(pid)));
  }
  return children;
}

/// Kills a launcher that hangs, so that a test does not; `is_killed`: whether it did.
inline ProcessOptions give_up_after(int seconds, bool* is_killed = nullptr) {
  ProcessOptions options;
  options.meanwhile = [=](pid_t launcher) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    siginfo_t ended{};
    while (ended.si_pid == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::waitid(P_PID, static_cast<id_t>(launcher), &ended, WEXITED | WNOHANG | WNOWAIT);
    }
    if (is_killed != nullptr) *is_killed = ended.si_pid == 0;
    if (ended.si_pid == 0) ::kill(launcher, SIGKILL);
  };
  return options;
}

/// How many lines a file has by now; 0 where there is none yet.
inline size_t lines_of(const std::string& path) {
  std::ifstream stream(path);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(stream), {}, '\n'));
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
