// A run that is killed or stopped at some point and resumed ends as one that was never interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/program/resume/resumed_run.h"
#include "lacuna/framework/core/random.h"

namespace lacuna::resume_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Every point there is, each in a run of its own.
TEST_F(Resume, GoesOnFromAnyPointOfDeath) {
  ASSERT_EQ(train({}, "whole").code, 0);
  const std::vector<std::string> points = {
      "run.after_config:1",         "checkpoint.before_write:1",
      "checkpoint.before_rename:1", "checkpoint.after_rename:1",
      "checkpoint.after_prune:1",   "step.after_backward:1",
      "step.before_update:1",       "step.between:6",
      "step.after_backward:20",     "checkpoint.before_write:3",
      "checkpoint.half_written:4",  "checkpoint.before_rename:5",
      "checkpoint.after_rename:6",  "step.between:18",
      "run.before_summary:1"};
  for (size_t i = 0; i < points.size(); ++i) {
    SCOPED_TRACE(points[i]);
    const std::string name = "run" + std::to_string(i);
    ASSERT_EQ(train({}, name, {.fault = points[i]}).code, kKill);
    EXPECT_EQ(resume_until_done(name), 1);
    expect_same_run(name, "whole");
  }
}

TEST_F(Resume, GoesOnFromTenPointsDrawnAtRandom) {
  const std::vector<std::string> sparse{
      "--set",
      "sparsity={sparsity: 0.8, param_filter: fc1.weight}",
      "--set",
      "optimizer={type: sgd, lr: {type: cosine, init: 0.1, half_period: 18}, momentum: "
      "0.9, nesterov: true, clip_norm: 1.0}",
      "--set",
      "train.prefetch=0"};
  ASSERT_EQ(train(sparse, "whole").code, 0);
  // How often a run passes each point: 2 batches in each of 18 steps, 6 checkpoints.
  const std::vector<std::pair<std::string, uint64_t>> points = {
      {"step.after_backward", 36},    {"step.before_update", 18},
      {"step.between", 18},           {"checkpoint.before_write", 6},
      {"checkpoint.half_written", 6}, {"checkpoint.before_rename", 6},
      {"checkpoint.after_rename", 6}, {"checkpoint.after_prune", 6}};
  const CounterRng rng(2024, "faults");
  for (uint64_t i = 0; i < 10; ++i) {
    const auto& [point, passes] = points[rng.below(2 * i, points.size())];
    const std::string fault = point + ":" + std::to_string(1 + rng.below(2 * i + 1, passes));
    SCOPED_TRACE(fault);
    const std::string name = "run" + std::to_string(i);
    ASSERT_EQ(train(sparse, name, {.fault = fault}).code, kKill);
    EXPECT_EQ(resume_until_done(name), 1);
    expect_same_run(name, "whole");
  }
}

TEST_F(Resume, FollowsCtrlCAndSigtermThatLeaveACheckpoint) {
  ASSERT_EQ(train({}, "whole").code, 0);
  struct Stop {
    std::string fault;
    int code;
    int64_t step;  // where the run stops
  };
  const std::vector<Stop> stops = {{"step.between:7:interrupt", 130, 7},
                                   {"step.between:7:stop", 143, 7},
                                   {"step.after_backward:3:interrupt", 130, 2},
                                   {"checkpoint.half_written:1:stop", 143, 0},
                                   {"step.before_update:12:stop", 143, 12}};
  for (size_t i = 0; i < stops.size(); ++i) {
    SCOPED_TRACE(stops[i].fault);
    const std::string name = "run" + std::to_string(i);
    const Ended ended = train({}, name, {.fault = stops[i].fault});
    EXPECT_EQ(ended.code, stops[i].code);
    EXPECT_THAT(ended.err, HasSubstr("warning: stopped at step " + std::to_string(stops[i].step) +
                                     " of 18; continue with `lacuna train --resume --run-dir " +
                                     run_dir(name) + "`\n"));
    EXPECT_EQ(read_checkpoint(checkpoint(stops[i].step, name)).step, stops[i].step);
    EXPECT_EQ(resume_until_done(name), 1);
    expect_same_run(name, "whole");
  }
}

TEST_F(Resume, EndsNormallyWhenTheSignalComesInTheLastStep) {
  EXPECT_EQ(train({}, "run", {.fault = "step.before_update:18:interrupt"}).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int64_t>("steps"), kSteps);
}

TEST_F(Resume, BeginsAtTheBeginningWhenNoCheckpointWasCompleted) {
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({}, "run", {.fault = "checkpoint.half_written:1"}).code, kKill);
  EXPECT_THAT(listing(run_dir() + "/checkpoints"), HasSubstr(".step-0000000000.h5.tmp-"));
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("there is no checkpoint yet: the run begins at step 0"));
  expect_same_run("run", "whole");
}

// Killed before config.yaml was whole: nothing was lost, and the same command starts the run.
TEST_F(Resume, TellsToStartARunThatHasNoConfigurationYet) {
  ASSERT_EQ(train({}, "run", {.fault = "run.after_folder:1"}).code, kKill);
  write_text(run_dir() + "/.config.yaml.tmp-1", "half");
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("there is nothing to resume: '" + run_dir() +
                        "' has no config.yaml of a run; start the run without --resume"));
  EXPECT_EQ(train().code, 0);
  EXPECT_EQ(
      listing(run_dir()),
      "checkpoints config.yaml confusion.json log.txt metrics.jsonl started.jsonl summary.json");
}

TEST_F(Resume, NeedsNoConfigurationButTheRunFolders) {
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, kKill);
  std::filesystem::remove(config());
  EXPECT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir()}).code, 0);
  expect_same_run("run", "whole");
}

TEST_F(Resume, FindsTheFolderByTheConfiguration) {
  const ProcessOptions here{.folder = folder_.path()};
  ASSERT_EQ(run_lacuna({"train", "config.yaml"}, here).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/config/summary.json"));
  EXPECT_EQ(run_lacuna({"train", "config.yaml", "--resume"}, here).code, 0);
  const std::vector<std::string> by_set{"train", "config.yaml", "--set", "run_dir=there"};
  ASSERT_EQ(run_lacuna(by_set, here).code, 0);
  EXPECT_EQ(run_lacuna({"train", "--resume", "--set", "run_dir=there"}, here).code, 0);
  EXPECT_THAT(read_text(folder_ / "there/log.txt"), HasSubstr("nothing is left to train"));
}

// A folder that was moved goes on where it is now.
TEST_F(Resume, GoesOnInAFolderThatWasMoved) {
  ASSERT_EQ(train({}, "old", {.fault = "step.between:6"}).code, kKill);
  std::filesystem::rename(run_dir("old"), run_dir("new"));
  EXPECT_EQ(train({"--resume"}, "new").code, 0);
  EXPECT_FALSE(std::filesystem::exists(run_dir("old")));
  EXPECT_EQ(load_yaml(run_dir("new") + "/config.yaml").required<std::string>("run_dir"),
            run_dir("new"));
}

TEST_F(Resume, GoesBackToAnOlderCheckpointWhenTheNewestIsDamaged) {
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({}, "run", {.fault = "step.between:10"}).code, kKill);
  std::filesystem::resize_file(checkpoint(8), 1000);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("warning: "));
  EXPECT_THAT(ended.err, HasSubstr("step-0000000008.h5"));
  EXPECT_THAT(ended.err, HasSubstr("going back to an older one"));
  EXPECT_THAT(ended.err, HasSubstr("resumed at step 4"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(8) + ".damaged"));
  std::filesystem::remove(checkpoint(8) + ".damaged");
  expect_same_run("run", "whole");
}

TEST_F(Resume, RefusesWhenAllCheckpointsAreDamagedAndListsThem) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:10"}).code, kKill);
  write_text(checkpoint(8), "not a checkpoint");
  std::filesystem::resize_file(checkpoint(4), 1000);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("none of the checkpoints in '" + run_dir() + "' can be used: "));
  EXPECT_THAT(ended.err, HasSubstr("step-0000000008.h5"));
  EXPECT_THAT(ended.err, HasSubstr("step-0000000004.h5"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(8)));
}

TEST_F(Resume, RefusesARunWhoseCheckpointsWereDeleted) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:10"}).code, kKill);
  std::filesystem::remove_all(run_dir() + "/checkpoints");
  const std::string metrics = read_text(run_dir() + "/metrics.jsonl");
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("has begun, but its checkpoints are gone"));
  EXPECT_EQ(read_text(run_dir() + "/metrics.jsonl"), metrics);
}

// As after a crash of the machine, which can take the end of a file that was not flushed.
TEST_F(Resume, MendsMetricsThatHaveLostTheirEnd) {
  ASSERT_EQ(train({}, "run", {.fault = "step.between:10"}).code, kKill);
  std::filesystem::resize_file(run_dir() + "/metrics.jsonl", 300);
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, HasSubstr("has lost events"));
  EXPECT_THAT(events(run_dir()), Not(IsEmpty()));
}

TEST_F(Resume, ReadsInitialWeightsOnlyOnce) {
  ASSERT_EQ(train({}, "pretrained").code, 0);
  std::filesystem::copy_file(checkpoint(kSteps, "pretrained"), folder_ / "weights.h5");
  std::string text = kTinyRun;
  text.replace(text.find("model:"), 6,
               "model:\n  init_from: " + (folder_ / "weights.h5") + "\n  layers:");
  for (size_t at = text.find("\n  - "); at != std::string::npos; at = text.find("\n  - ", at + 5)) {
    text.replace(at, 5, "\n    - ");
  }
  write_text(config(), text);
  ASSERT_EQ(train({}, "whole").code, 0);
  ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, kKill);
  std::filesystem::remove(folder_ / "weights.h5");
  const Ended ended = train({"--resume"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_same_run("run", "whole");
}

}  // namespace
}  // namespace lacuna::resume_test
