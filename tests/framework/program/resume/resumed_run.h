// Runs that are killed at given points, resumed until they end, and compared with whole ones.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna {

constexpr int kKill = -9;
/// Of the fixture's configuration.
constexpr int64_t kSteps = 18;

class Resume : public RunFixture {
 protected:
  /// The run goes on until it ends; the number of times it had to be resumed.
  int resume_until_done(const std::string& name, const std::vector<std::string>& faults = {}) {
    size_t next = 0;
    for (int count = 1; count < 40; ++count) {
      const std::string fault = next < faults.size() ? faults[next++] : "";
      const Ended ended = train({"--resume"}, name, {.fault = fault});
      if (ended.code == 0 && next >= faults.size()) return count;
      EXPECT_EQ(ended.code, kKill) << fault << ": " << ended.err;
      if (ended.code != kKill) break;
    }
    ADD_FAILURE() << "the run does not end";
    return 0;
  }

  /// Each kill comes after a resume from where the one before has left the run, in one chain.
  void expect_survives(const std::vector<std::string>& settings) {
    ASSERT_EQ(train(settings, "whole").code, 0);
    EXPECT_EQ(train(settings, "killed", {.fault = "checkpoint.half_written:1"}).code, kKill);
    const int count = resume_until_done(
        "killed", {"step.between:2", "step.after_backward:9", "checkpoint.half_written:1",
                   "step.before_update:3", "checkpoint.before_rename:1",
                   "checkpoint.after_rename:1", "step.between:1", "checkpoint.before_write:1",
                   "checkpoint.after_prune:1", "run.before_summary:1"});
    EXPECT_EQ(count, 11);
    expect_same_run("killed", "whole");
  }

  void expect_same_run(const std::string& a, const std::string& b) {
    const Checkpoint x = read_checkpoint(checkpoint(kSteps, a));
    const Checkpoint y = read_checkpoint(checkpoint(kSteps, b));
    EXPECT_THAT(differences(x.state, y.state), testing::IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(a)), timeless_events(run_dir(b)));
    for (const char* key :
         {"test_accuracy", "test_loss", "train_loss", "steps", "nnz", "test_top5_accuracy"}) {
      EXPECT_EQ(summary(run_dir(a)).get(key).text(), summary(run_dir(b)).get(key).text()) << key;
    }
    EXPECT_EQ(listing(run_dir(a)), listing(run_dir(b)));
    EXPECT_EQ(listing(run_dir(a) + "/checkpoints"), listing(run_dir(b) + "/checkpoints"));
  }
};

}  // namespace lacuna
