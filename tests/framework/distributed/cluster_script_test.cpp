// scripts/cluster.sh: jobs that lose processes, and are started again.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/distributed/job.h"
#include "paths.h"

namespace lacuna::cluster_script_test {
namespace {

using testing::HasSubstr;

const std::string kRun = R"(
data: {type: glyphs, train_size: 128, test_size: 30}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 60}
  - relu
  - {type: dropout, p: 0.3}
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.003}
sparsity: {algorithm: rigl, sparsity: 0.9, update: {freq: 5}, param_filter: [fc1.weight]}
train: {steps: 600, batch_size: 32, log_every: 1, eval_every: 1000, checkpoint: {every: 7}}
)";

// Gives a job that hangs an end, so that a test does.
class Patience {
 public:
  bool is_over() const { return std::chrono::steady_clock::now() > end_; }
  // Looks again and again; false where it is over before.
  template <class Condition>
  bool wait_for(Condition condition) const {
    while (!condition()) {
      if (is_over()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::minutes(5);
};

class ClusterScript : public JobFixture {
 protected:
  ClusterScript() { write_text(config(), kRun); }

  /// Its command line, with a pause between starts and a program in mpirun's place.
  std::vector<std::string> script(const std::string& wait, const char* mpirun,
                                  const std::vector<std::string>& more) const {
    ::setenv("MPIRUN", mpirun, 1);
    ::setenv("LACUNA", kProgram, 1);
    // What is left of a job that lost a process has no second in which to end by itself.
    ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 1);
    std::vector<std::string> words{
        "bash", std::string(kSourceFolder) + "/scripts/cluster.sh", "--wait", wait, "-np", "4"};
    words.insert(words.end(), kTakeTurns.begin(), kTakeTurns.end());
    words.insert(words.end(), {"--restarts", "10", "--"});
    const std::vector<std::string> training = arguments("run", more);
    words.insert(words.end(), training.begin(), training.end());
    return words;
  }
  Ended run_script(const std::vector<std::string>& more, const ProcessOptions& options = {}) const {
    return run_starter("/bin/bash", script("0", kMpirun, more), options);
  }
  size_t steps() const { return lines_of(run_dir() + "/metrics.jsonl"); }
};

// mpirun, as the script has started it, and its processes.
std::pair<pid_t, std::vector<pid_t>> job_of(pid_t script) {
  for (const pid_t child : children_of(script)) {
    std::vector<pid_t> processes = children_of(child);
    if (!processes.empty()) return {child, std::move(processes)};
  }
  return {0, {}};
}

// At the start of a process, in training, while a checkpoint is written: whenever it falls.
TEST_F(ClusterScript, TenKillsOfRandomProcessesEndInTheSameNumbers) {
  // The last kill falls on step 235, or a little later.
  const std::vector<std::string> more{"--set", "model.1.out_features=80", "--set",
                                      "train.steps=400"};
  ASSERT_EQ(run(0, "whole", more).code, 0);
  int kills = 0;
  ProcessOptions options;
  options.meanwhile = [&](pid_t script) {
    const Patience patience;
    std::mt19937 random(16);
    const auto below = [&](size_t count) { return random() % count; };
    size_t until = 0;
    pid_t killed = 0;
    while (kills < 10) {
      until += below(50);
      std::pair<pid_t, std::vector<pid_t>> job;
      const bool is_there = patience.wait_for([&] {
        job = job_of(script);
        return job.first != killed && !job.second.empty() && steps() >= until;
      });
      if (!is_there) return;
      ::kill(job.second[below(job.second.size())], SIGKILL);
      killed = job.first;
      ++kills;
    }
  };
  const Ended ended = run_script(more, options);
  EXPECT_EQ(kills, 10);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count_of(ended.err, "cluster: the job ended with code"), 10u) << ended.err;
  EXPECT_THAT(different(400, "whole", "run"), testing::IsEmpty());
  EXPECT_EQ(count_of(ended.err, "the configuration given"), 0u) << ended.err;
}

TEST_F(ClusterScript, HandsASignalOnAndStartsNoMore) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1}) {
    std::filesystem::remove_all(run_dir());
    ProcessOptions options;
    options.meanwhile = [&](pid_t script) {
      const Patience patience;
      patience.wait_for([&] { return steps() >= 20; });
      ::kill(script, signal);
    };
    const Ended ended = run_script({}, options);
    EXPECT_EQ(ended.code, 143) << signal << ": " << ended.err;
    EXPECT_EQ(count_of(ended.err, "stopped at step"), 1u) << signal << ": " << ended.err;
    EXPECT_EQ(count_of(ended.err, "cluster: "), 0u) << signal << ": " << ended.err;
  }
}

// No job is there by then that could be told.
TEST_F(ClusterScript, ASignalBetweenTwoStartsEndsIt) {
  ProcessOptions options;
  options.meanwhile = [](pid_t script) {
    const Patience patience;
    // The job may be over before it is seen.
    patience.wait_for([&] {
      return std::ranges::any_of(children_of(script), [](pid_t child) {
        return read_text("/proc/" + std::to_string(child) + "/comm") == "sleep\n";
      });
    });
    ::kill(script, SIGTERM);
  };
  const auto start = std::chrono::steady_clock::now();
  const Ended ended = run_starter("/bin/bash", script("600", "false", {}), options);
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "cluster: the job ended with code 1; start 2 of"), 1u) << ended.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(300));
}

TEST_F(ClusterScript, NamesWhatIsNoNumberAndStartsNoMissingProgramAgain) {
  const Ended number = run_starter("/bin/bash", script("soon", "false", {}), {});
  EXPECT_EQ(number.code, 2);
  EXPECT_EQ(number.err, "cluster: --wait needs a whole number, found 'soon'\n");
  const Ended missing = run_starter("/bin/bash", script("0", "no-such-mpirun", {}), {});
  EXPECT_EQ(missing.code, 127);
  EXPECT_EQ(count_of(missing.err, "cluster: the job ended"), 0u) << missing.err;
}

// A finished run would be lengthened by the second start.
TEST_F(ClusterScript, LeavesARunThatItDidNotBeginAlone) {
  std::filesystem::create_directory(run_dir());
  write_text(run_dir() + "/config.yaml", "a: 1\n");
  for (const std::string option : {"--run-dir", "--out"}) {  // another word for it
    std::vector<std::string> words = script("0", "false", {});
    std::ranges::replace(words, std::string("--run-dir"), option);
    const Ended ended = run_starter("/bin/bash", words, {});
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.err,
              "cluster: '" + run_dir() +
                  "' holds a run already; add --resume to continue it, or choose another "
                  "folder with --run-dir\n");
  }
  EXPECT_EQ(read_text(run_dir() + "/config.yaml"), "a: 1\n");
}

TEST_F(ClusterScript, StartsAMistakeOnce) {
  const Ended ended = run_script({"--set", "train.stepz=4"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(count_of(ended.err, "unknown key 'stepz'"), 1u) << ended.err;
  EXPECT_EQ(count_of(ended.err, "cluster: "), 0u) << ended.err;
}

}  // namespace
}  // namespace lacuna::cluster_script_test
