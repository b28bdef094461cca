// A run in which the n-th call that changes one of its files fails: it ends with the code of an
// error and a message that names the file and the cause, no checkpoint is lost, and resumed it ends
// as one that was left alone. LACUNA_ALL_FAULTS in the environment: every n, and not some thirty.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "framework/program/runs.h"
#include "paths.h"

namespace lacuna::run_faults_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kRun = R"(
data: {type: glyphs, train_size: 100, test_size: 30, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 12}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.01}
sparsity: {algorithm: rigl, sparsity: 0.6, update: {freq: 2}}
train:
  steps: 8
  batch_size: 8
  threads: 1
  log_every: 3
  eval_every: 3
  tensorboard: true
  checkpoint: {every: 3, keep_last: 2, keep_best: true}
)";

class RunFaults : public RunFixture {
 protected:
  RunFaults() { write_text(config(), kRun); }

  // The process whose `at`-th call fails; the report of which call it was comes back.
  Ended train_with_fault(const std::string& name, long at, const std::string& length,
                         std::string& report) const {
    const std::string file = folder_ / "report", folder = run_dir(name);
    const std::string spec = std::to_string(at) + ":" + length + ":" + file + ":" + folder;
    const Ended ended = train({}, name, {.in_child = [&] {
                                ::setenv("LACUNA_WRITE_FAULTS", spec.c_str(), 1);
                                ::setenv("LD_PRELOAD", kWriteFaultsLibrary, 1);
                              }});
    report = read_text(file);
    return ended;
  }

  void require_good_checkpoints(const std::string& name) const {
    const std::string folder = run_dir(name) + "/checkpoints";
    if (!std::filesystem::is_directory(folder)) return;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".h5") continue;
      EXPECT_NO_THROW(read_checkpoint(entry.path().string()));
    }
  }

  void require_same_end(const std::string& name) const {
    const Checkpoint whole = read_checkpoint(checkpoint(8, "whole"));
    EXPECT_THAT(differences(whole.state, read_checkpoint(checkpoint(8, name)).state),
                testing::IsEmpty());
    EXPECT_EQ(timeless_events(run_dir("whole")), timeless_events(run_dir(name)));
    EXPECT_EQ(listing(run_dir("whole") + "/checkpoints"), listing(run_dir(name) + "/checkpoints"));
    EXPECT_EQ(listing(run_dir("whole") + "/masks"), listing(run_dir(name) + "/masks"));
  }
};

TEST_F(RunFaults, NothingIsLost) {
  std::string report;
  const Ended whole = train_with_fault("whole", 0, "once", report);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const long calls = std::strtol(report.c_str(), nullptr, 10);
  ASSERT_GT(calls, 100);
  const bool tries_all = std::getenv("LACUNA_ALL_FAULTS") != nullptr;
  const long stride = tries_all ? 1 : std::max(calls / 15, 1L);
  for (const std::string length : {"once", "on"}) {
    // Not the same calls every other time.
    for (long at = length == "once" ? 1 : 1 + stride / 2; at <= calls; at += stride) {
      std::filesystem::remove_all(run_dir());
      const Ended ended = train_with_fault("run", at, length, report);
      SCOPED_TRACE(testing::Message() << "call " << at << " of " << report << ", " << length
                                      << ", exit code " << ended.code << "\n"
                                      << ended.err);
      if (ended.code != 0) {
        EXPECT_EQ(ended.code, 1);
        EXPECT_THAT(ended.err, HasSubstr(run_dir()));
        EXPECT_THAT(ended.err, AnyOf(HasSubstr("No space left"), HasSubstr("Input/output error")));
        require_good_checkpoints("run");
        const bool has_begun = std::filesystem::exists(run_dir() + "/config.yaml");
        const Ended again = has_begun ? train({"--resume"}) : train();
        EXPECT_EQ(again.code, 0) << again.err;
      }
      require_same_end("run");
      if (HasFailure()) return;
    }
  }
}

// As a power failure may leave it: the newest checkpoint cut at some byte, or with zeros from there
// on; the one before is taken.
TEST_F(RunFaults, ACheckpointCutAnywhereIsPassedOver) {
  ASSERT_EQ(train({}, "whole").code, 0);
  const std::string path = checkpoint(8, "whole");
  const std::string newest = read_text(path);
  const size_t stride = newest.size() / 3000 + 1;
  for (size_t bytes = 0, count = 0; bytes < newest.size(); bytes += bytes < 600 ? 1 : stride) {
    for (const bool is_filled : {false, true}) {
      std::string cut = newest.substr(0, bytes);
      if (is_filled) cut.resize(newest.size(), '\0');
      if (cut == newest) continue;  // zeros were there
      write_text(path, cut);
      ASSERT_THROW(read_checkpoint(path), CheckpointError) << "cut at byte " << bytes;
      if (++count % 100 != 0) continue;
      ASSERT_EQ(find_checkpoint(run_dir("whole"), KeptCheckpoint::Last).path(),
                checkpoint(6, "whole"))
          << "cut at byte " << bytes;
    }
  }
  const Ended resumed = train({"--resume"}, "whole");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going back to an older one"));
  ASSERT_EQ(train({}, "again").code, 0);
  EXPECT_EQ(timeless_events(run_dir("again")), timeless_events(run_dir("whole")));
}

// metrics.jsonl and summary.json cut at every byte, and a file of masks: the run goes on.
TEST_F(RunFaults, OtherFilesCutAnywhereAreMended) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(train({}, "whole").code, 0);
  const std::string metrics = read_text(run_dir() + "/metrics.jsonl");
  const std::string summary = read_text(run_dir() + "/summary.json");
  const std::string masks = run_dir() + "/masks/step-0000000004.h5";
  const std::string mask_bytes = read_text(masks);
  for (const double part : {0.0, 0.01, 0.3, 0.77, 0.999}) {
    const auto cut = [&](const std::string& text) {
      return text.substr(0, static_cast<size_t>(part * static_cast<double>(text.size())));
    };
    std::filesystem::remove(checkpoint(8));  // killed before it was written
    write_text(run_dir() + "/metrics.jsonl", cut(metrics));
    write_text(run_dir() + "/summary.json", cut(summary));
    write_text(masks, cut(mask_bytes));
    const Ended resumed = train({"--resume"});
    EXPECT_EQ(resumed.code, 0) << part << ": " << resumed.err;
    EXPECT_THAT(differences(read_checkpoint(checkpoint(8)).state,
                            read_checkpoint(checkpoint(8, "whole")).state),
                testing::IsEmpty());
  }
}

}  // namespace
}  // namespace lacuna::run_faults_test
