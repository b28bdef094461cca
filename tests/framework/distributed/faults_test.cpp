// What processes say and leave when something is wrong, and what they send when nothing is.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "framework/distributed/job.h"
#include "framework/train/tiny_convolution.h"
#include "paths.h"

namespace lacuna::faults_test {
namespace {

using testing::HasSubstr;

const std::string kModel = R"(
data: {type: glyphs, train_size: 128, test_size: 30}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 100}
  - relu
  - {type: dropout, p: 0.3}
  - {type: linear, name: fc2, out_features: 60}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.003}
)";

class Job : public JobFixture {
 protected:
  Job() { write("{steps: 6, batch_size: 32, log_every: 1}", ""); }
  void write(const std::string& train, const std::string& sparsity) const {
    write_text(config(), kModel + "train: " + train + "\n" +
                             (sparsity.empty() ? "" : "sparsity: " + sparsity + "\n"));
  }
};

TEST_F(Job, ProcessesMustDivideTheShards) {
  const Ended ended = run(3, "run");
  EXPECT_EQ(ended.code, 2);
  const std::string message = "3 processes cannot share 8 shards equally; start 1, 2, 4 or 8";
  EXPECT_EQ(count_of(ended.err, message + ", or give another number of shards"), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("process 0 on "));
  ASSERT_EQ(run(0, "run").code, 0);
  const Ended resumed = run_job(3, {"train", "--resume", "--run-dir", run_dir()});
  EXPECT_EQ(resumed.code, 2);
  EXPECT_EQ(count_of(resumed.err, message + " (a resumed run keeps its shards)"), 1u)
      << resumed.err;
}

TEST_F(Job, ShardsAreEightUnderALauncherAndStandInTheConfiguration) {
  const Ended ended = run_job(2, {"train", config(), "--run-dir", run_dir()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(load_yaml(run_dir() + "/config.yaml").at("train").required<int64_t>("shards"), 8);
  EXPECT_EQ(summary(run_dir()).required<int64_t>("processes"), 2);
}

// 4 bytes × (nonzeros + dense parameters) × 2 (N − 1) / N, in each step.
TEST_F(Job, SendsNonzerosAlone) {
  for (const char* sparsity : {"0.5", "0.9", "0.99"}) {
    write("{steps: 4, batch_size: 32, log_every: 1}",
          std::string("{algorithm: static, param_filter: [fc1.weight, fc2.weight], sparsity: ") +
              sparsity + "}");
    for (const int processes : {2, 4}) {
      const std::string name = std::string(sparsity) + "-" + std::to_string(processes);
      const Ended ended = run(processes, name);
      ASSERT_EQ(ended.code, 0) << ended.err;
      const auto nnz = static_cast<double>(summary(run_dir(name)).required<int64_t>("nnz"));
      const double expected = 4.0 * nnz * 2.0 * (processes - 1) / processes;
      int seen = 0;
      for (const Config& event : events(run_dir(name))) {
        if (event.required<std::string>("split") != "train") continue;
        ++seen;
        EXPECT_NEAR(event.required<double>("bytes_sent"), expected, 0.02 * expected) << name;
      }
      EXPECT_EQ(seen, 4);
    }
  }
}

// What Open MPI says that the first process has sent, and what the run's metrics say.
struct Sent {
  int64_t counted_by_mpi = 0, in_metrics = 0;
};

// Nothing is left out: of the bytes between the tenth step and the last each is in the metrics. (Of
// the start, where configurations are compared, none is: numbers of as many digits are as long.)
TEST_F(Job, CountsWhatItSends) {
  write_text(config(), "data: {type: colour_glyphs, train_size: 200, test_size: 20}\nmodel:" +
                           std::string(kTinyConvolutionModel) + R"(
optimizer: {type: sgd, lr: 0.05, momentum: 0.9}
sparsity: {algorithm: rigl, sparsity: 0.9, update: {freq: 2, stop: 100}, param_filter: [")" +
                           kTinyConvolutionFilter + R"("]}
train: {steps: 18, batch_size: 16, log_every: 1, eval_every: 100}
)");
  const auto run_steps = [&](int processes, int64_t steps) {
    const std::string name = std::to_string(processes) + "-" + std::to_string(steps);
    std::vector<std::string> words;
    for (const std::string& setting : {std::string("enable 2"), std::string("enable_output 3"),
                                       "filename " + run_dir(name + "-sent")}) {
      const size_t space = setting.find(' ');
      words.insert(words.end(), {"--mca", "pml_monitoring_" + setting.substr(0, space),
                                 setting.substr(space + 1)});
    }
    words.insert(words.end(), {"-np", std::to_string(processes), kProgram});
    const std::vector<std::string> training =
        arguments(name, {"--set", "train.steps=" + std::to_string(steps)});
    words.insert(words.end(), training.begin(), training.end());
    const Ended ended = run_processes(words);
    EXPECT_EQ(ended.code, 0) << ended.err;
    Sent sent;
    // "E 0 1 233408 bytes …": to another process, by a message (E) or within a collective call (I).
    std::istringstream lines(read_text(run_dir(name + "-sent") + ".0.prof"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream parts(line);
      std::string kind;
      int64_t from = 0, to = 0, bytes = 0;
      parts >> kind >> from >> to >> bytes;
      if (kind == "E" || kind == "I") sent.counted_by_mpi += bytes;
    }
    for (const Config& event : events(run_dir(name))) {
      if (event.required<std::string>("split") != "train") continue;
      sent.in_metrics +=
          event.required<int64_t>("bytes_sent") + event.required<int64_t>("statistics_bytes_sent");
    }
    return sent;
  };
  for (const int processes : {2, 4}) {
    const Sent few = run_steps(processes, 10), many = run_steps(processes, 18);
    EXPECT_GT(few.counted_by_mpi, 0);
    EXPECT_EQ(many.in_metrics - few.in_metrics, many.counted_by_mpi - few.counted_by_mpi)
        << processes << " processes";
  }
}

// (2.5 + 1 / (2 · density)) × those of an ordinary step, at most, whatever competes.
TEST_F(Job, SendsHalfOfTheDenseGradientOnUpdatesOfRigL) {
  struct Growth {
    const char* name;
    const char* options;
    double density;
  };
  for (const Growth& growth :
       {Growth{"unstructured", "sparsity: 0.9", 0.1}, Growth{"half", "sparsity: 0.5", 0.5},
        Growth{"block", "sparsity: 0.9, pattern: {type: block, rows: 4, cols: 4}", 0.1},
        Growth{"block_75", "sparsity: 0.75, pattern: {type: block, rows: 2, cols: 4}", 0.25},
        Growth{"nm", "pattern: {type: nm, n: 1, m: 4}", 0.25},
        Growth{"groups", "sparsity: 0.9, balance_out_groups: 20", 0.1}}) {
    write("{steps: 6, batch_size: 32, log_every: 1}",
          std::string("{algorithm: rigl, update: {freq: 3}, param_filter: [fc1.weight, "
                      "fc2.weight], ") +
              growth.options + "}");
    for (const int processes : {2, 4}) {
      const std::string name = growth.name + std::to_string(processes);
      const Ended ended = run(processes, name);
      ASSERT_EQ(ended.code, 0) << name << ": " << ended.err;
      std::vector<double> bytes;
      for (const Config& event : events(run_dir(name))) {
        if (event.required<std::string>("split") == "train") {
          bytes.push_back(event.required<double>("bytes_sent"));
        }
      }
      ASSERT_EQ(bytes.size(), 6u);
      EXPECT_GT(bytes[2], (1.0 + 0.3 / (2 * growth.density)) * bytes[1]) << name;
      EXPECT_LE(bytes[2], (2.5 + 1.0 / (2 * growth.density)) * bytes[1]) << name;
      EXPECT_DOUBLE_EQ(bytes[3], bytes[1]) << name;
      RecordProperty(name, std::to_string(bytes[2] / bytes[1]));
    }
  }
}

// Sends a signal to the last of the job's processes (0: to mpirun) once it has logged some steps.
ProcessOptions after_steps(const std::string& metrics, size_t lines, int signal, bool to_launcher) {
  ProcessOptions options;
  options.meanwhile = [=](pid_t launcher) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (lines_of(metrics) < lines && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::vector<pid_t> processes = children_of(launcher);
    ::kill(to_launcher || processes.empty() ? launcher : processes.back(), signal);
  };
  return options;
}

constexpr const char* kLongRun =
    "{steps: 600, batch_size: 32, log_every: 1, eval_every: 1000, checkpoint: {every: 7}}";

TEST_F(Job, GoesOnByAnotherNumberOfProcessesAfterOneWasKilled) {
  write(kLongRun, "{algorithm: rigl, sparsity: 0.9, update: {freq: 5}}");
  ASSERT_EQ(run(0, "whole").code, 0);
  const auto start = std::chrono::steady_clock::now();
  const Ended killed =
      run_job(4, arguments("run"), after_steps(run_dir() + "/metrics.jsonl", 20, SIGKILL, false));
  EXPECT_NE(killed.code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(240));
  ASSERT_FALSE(std::filesystem::exists(checkpoint(600))) << "it ended before it was killed";
  const Ended signalled =
      run_job(2, {"train", "--resume", "--run-dir", run_dir()},
              after_steps(run_dir() + "/metrics.jsonl", lines_of(run_dir() + "/metrics.jsonl") + 20,
                          SIGTERM, false));
  EXPECT_EQ(signalled.code, 143) << signalled.err;
  EXPECT_EQ(count_of(signalled.err, "stopped at step"), 1u) << signalled.err;
  ASSERT_FALSE(std::filesystem::exists(checkpoint(600))) << "it ended before the signal";
  const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(different(600, "whole", "run"), testing::IsEmpty());
}

#ifdef LACUNA_WRITE_FAULTS
// The disk of the process that writes is full from some call of a save on: all of them end, it is
// told once, and the run goes on from the last whole checkpoint.
TEST_F(Job, EndsWhereTheDiskIsFullAndGoesOnFromTheLastCheckpoint) {
  write("{steps: 30, batch_size: 32, log_every: 1, checkpoint: {every: 10}}",
        "{algorithm: rigl, sparsity: 0.9, update: {freq: 5}}");
  ASSERT_EQ(run(0, "whole").code, 0);
  const std::string report = folder_ / "report", full = run_dir();
  const auto faults = [&](long at) {
    return std::to_string(at) + ":on:" + report + ":" + full + "/checkpoints";
  };
  // So many calls are a whole save's: the second one fails.
  const Ended counted = run_lacuna(arguments("run", {"--set", "train.steps=10"}), {.in_child = [&] {
                                     ::setenv("LACUNA_WRITE_FAULTS", faults(0).c_str(), 1);
                                     ::setenv("LD_PRELOAD", kWriteFaultsLibrary, 1);
                                   }});
  ASSERT_EQ(counted.code, 0) << counted.err;
  const long calls = std::strtol(read_text(report).c_str(), nullptr, 10);
  ASSERT_GT(calls, 0);
  std::filesystem::remove_all(full);
  const Ended ended = run_job(2, arguments("run"), {},
                              {std::string("LD_PRELOAD=") + kWriteFaultsLibrary,
                               "LACUNA_WRITE_FAULTS=" + faults(calls + 3)});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "was not written"), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("process 0 on "));
  ASSERT_FALSE(std::filesystem::exists(checkpoint(30)));
  ASSERT_TRUE(std::filesystem::exists(checkpoint(10)));
  ASSERT_EQ(run_job(4, {"train", "--resume", "--run-dir", full}).code, 0);
  EXPECT_THAT(different(30, "whole", "run"), testing::IsEmpty());
}

// The processes that do not see the run's folder keep its checkpoint for a moment.
TEST_F(Job, NamesTheProcessThatHasNoRoomForTheCheckpoint) {
  ASSERT_EQ(run(0, "run").code, 0);
  const std::string room = folder_ / "room";
  std::filesystem::create_directory(room);
  const std::string faults = "1:on:" + (folder_ / "report") + ":" + room;
  const std::vector<std::string> on{"train",   "--resume", "--run-dir",
                                    run_dir(), "--set",    "train.steps=9"};
  const Ended ended = run_job(2, on, {},
                              {"TMPDIR=" + room, std::string("LD_PRELOAD=") + kWriteFaultsLibrary,
                               "LACUNA_WRITE_FAULTS=" + faults});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "error: process 1 on "), 1u) << ended.err;
  EXPECT_THAT(ended.err,
              testing::ContainsRegex(
                  room + ".* temporary copy of the run's checkpoint.*: No space left on device"));
  EXPECT_TRUE(std::filesystem::is_empty(room));
  EXPECT_EQ(run_job(2, on, {}, {"TMPDIR=" + room}).code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(room));
}
#endif

// A killed process cannot remove anything.
TEST_F(Job, LeavesNothingOfTheCheckpointWhereItIsKilled) {
  ASSERT_EQ(run(0, "run").code, 0);
  const std::string room = folder_ / "room";
  std::filesystem::create_directory(room);
  const Ended ended =
      run_job(2, {"train", "--resume", "--run-dir", run_dir(), "--set", "train.steps=9"}, {},
              {"TMPDIR=" + room, "LACUNA_FAULT=step.before_update:1"});
  EXPECT_NE(ended.code, 0);
  EXPECT_FALSE(std::filesystem::exists(checkpoint(9)));
  EXPECT_TRUE(std::filesystem::is_empty(room));
}

TEST_F(Job, NamesTheProcessThatHasNoFolderForTheCheckpoint) {
  ASSERT_EQ(run(0, "run").code, 0);
  const Ended ended =
      run_job(2, {"train", "--resume", "--run-dir", run_dir(), "--set", "train.steps=9"}, {},
              {"TMPDIR=" + (folder_ / "nowhere")});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "error: process 1 on "), 1u) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("there is no folder for a temporary copy of the run's checkpoint"));
}

// Files that may not grow: neither the writing process's, nor the launcher's own.
TEST_F(Job, EndsWhereNoFileMayGrowLarger) {
  const std::string wide = "{steps: 600, batch_size: 32, checkpoint: {every: 1}}";
  write(wide, "{algorithm: rigl, sparsity: 0.9, update: {freq: 5}}");
  for (const int64_t most : {int64_t{100} << 10, int64_t{1} << 20}) {
    ProcessOptions options{.max_file_bytes = most};
    bool is_killed = false;
    options.meanwhile = give_up_after(60, &is_killed).meanwhile;
    std::filesystem::remove_all(run_dir());
    const Ended ended =
        run_job(2, arguments("run", {"--set", "model.1.out_features=2000"}), options);
    EXPECT_FALSE(is_killed) << "mpirun hung, " << most << " bytes: " << ended.err;
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_EQ(count_of(ended.err, "error: process 0 on "), 1u) << ended.err;
    EXPECT_THAT(ended.err, testing::ContainsRegex("error: .*" + run_dir() + ".*: File too large"));
  }
}

TEST_F(Job, SavesWhenTheLauncherHandsASignalOn) {
  write(kLongRun, "");
  const Ended ended =
      run_job(2, arguments("run"), after_steps(run_dir() + "/metrics.jsonl", 10, SIGUSR1, true));
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("stopped at step"));
}

}  // namespace
}  // namespace lacuna::faults_test
