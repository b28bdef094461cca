// A run that is killed and resumed ends as one that was never interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"
#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kKill = -9;
constexpr int64_t kSteps = 18;

struct Variant {
  std::string name;
  std::vector<std::string> settings;
};

std::vector<std::string> set(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments;
  for (const std::string& setting : settings) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

class Resume : public RunFixture {
 protected:
  // The run goes on until it ends; the number of times it had to be resumed.
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

  // Each kill comes after a resume from where the one before has left the run, in one chain.
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
    EXPECT_THAT(differences(x.state, y.state), IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(a)), timeless_events(run_dir(b)));
    for (const char* key :
         {"test_accuracy", "test_loss", "train_loss", "steps", "nnz", "test_top5_accuracy"}) {
      EXPECT_EQ(summary(run_dir(a)).at(key).text(), summary(run_dir(b)).at(key).text()) << key;
    }
    EXPECT_EQ(listing(run_dir(a)), listing(run_dir(b)));
    EXPECT_EQ(listing(run_dir(a) + "/checkpoints"), listing(run_dir(b) + "/checkpoints"));
  }
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"DenseAdam", {}},
      {"SparseMomentum",
       {"sparsity={sparsity: 0.8, param_filter: fc1.weight}",
        "optimizer={type: sgd, lr: {type: cosine, init: 0.1, half_period: 18}, momentum: 0.9, "
        "nesterov: true, clip_norm: 1.0}",
        "train.prefetch=0"}},
      {"AugmentedColours",
       {"data={type: colour_glyphs, train_size: 100, test_size: 30, validation: 10, "
        "normalize: standard, augment: {crop: 4, flip: true, cutout: 8}}"}},
      {"MixedColours",
       {"data={type: colour_glyphs, train_size: 100, test_size: 30, validation: 10, augment: "
        "{crop: "
        "2, rand_augment: {operations: 2, magnitude: 9}, mixup: 0.4}}",
        "loss={type: cross_entropy, label_smoothing: 0.1}",
        "sparsity={algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 2}}"}},
      {"BalancedSampling",
       {"data.sampling=balanced", "train.shards=2",
        "loss={type: cross_entropy, class_weights: [1, 2, 1, 1, 1, 1, 1, 1, 1, 3]}"}},
      {"BalancedWeights", {"loss={class_weights: balanced}"}},
      {"RigL",
       {"sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, param_filter: fc1.weight}"}},
      {"Set", {"sparsity={algorithm: set, sparsity: 0.8, update: {freq: 2}}"}},
      {"Gmp",
       {"sparsity={algorithm: gmp, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"Snip", {"sparsity={algorithm: snip, sparsity: 0.8}"}},
      {"ParametrizedGmp",
       {"parametrization={type: sparse_mup, base_width: 6, density: first}", "optimizer.type=adamw",
        "sparsity={algorithm: gmp, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.3, final: 0.8, start: 2, end: 14}}"}},
      {"ParametrizedSet",
       {"parametrization={type: sparse_mup, base_width: 6}", "train.shards=2",
        "sparsity={algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 2}}"}},
      {"SparseGpt",
       {"sparsity={algorithm: sparsegpt, sparsity: 0.6, calibration: 32, layout: csr}"}},
      {"PhasesOfOneShot",
       {"sparsity={phases: [{until: 4, algorithm: wanda, sparsity: 0.5, calibration: 32}, "
        "{until: 8, algorithm: static, sparsity: 0.5}, {until: 13, algorithm: admm, sparsity: 0.8, "
        "least_squares: true}, {algorithm: rigl, sparsity: 0.8, update: {freq: 2}}]}"}},
      {"Snfs", {"sparsity={algorithm: snfs, sparsity: 0.8, update: {freq: 3}}"}},
      {"StraightThrough",
       {"sparsity={algorithm: ste, update: {freq: 2}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"Saliency",
       {"sparsity={algorithm: saliency, update: {freq: 3}, "
        "sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 14}}"}},
      {"StructuredByBudget",
       {"sparsity={algorithm: structured, to: {flops: 0.4}, update: {freq: 3}}"}},
      {"StructuredBySaliency",
       {"sparsity={algorithm: structured, criterion: saliency, sparsity: 0.6, "
        "update: {freq: 5}, layout: csr}"}},
      {"AcDc", {"sparsity={algorithm: acdc, sparsity: 0.8, update: {freq: 6}}"}},
      {"Group",
       {"sparsity=[{algorithm: snip, sparsity: 0.8, param_filter: fc1.weight}, "
        "{algorithm: ste, sparsity: 0.5, update: {freq: 3}, param_filter: fc2.weight}]"}},
      {"PhasesOfStateful",
       {"sparsity={phases: [{until: 5, algorithm: static, sparsity: 0.6}, "
        "{until: 11, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
        "{algorithm: snfs, sparsity: 0.8, update: {freq: 2}}]}"}},
      {"Phases",
       {"sparsity={phases: [{until: 7, algorithm: set, sparsity: 0.7, update: {freq: 2}}, "
        "{until: 13, algorithm: dense}, {algorithm: static, sparsity: 0.8}]}"}},
      {"BlockRigL",
       {"sparsity={algorithm: rigl, sparsity: 0.6, update: {freq: 3}, layout: block, "
        "pattern: {type: block, rows: 2, cols: 4}, param_filter: fc1.weight}"}},
      {"SemiSparseAtEveryStep",
       {"sparsity={algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, layout: nm, "
        "decay: 0.0002, param_filter: fc1.weight}"}},
      {"SparsifiedWeights",
       {"sparsifiers=[{tensor: fc1.weight, sparsifier: {type: nm, n: 2, m: 4}, every: 2}, "
        "{tensor: fc2.weight, sparsifier: {type: scalar_fraction, fraction: 0.5}, layout: csr}]"}},
      {"Frozen", {"model.1.trainable=false", "sparsity={sparsity: 0.5, param_filter: default}"}},
      {"AveragedRigL",
       {"sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, layout: csr, "
        "param_filter: fc1.weight}",
        "train.ema={decay: 0.8, start: 5}"}},
      {"AveragedPhases",
       {"sparsity={phases: [{until: 5, algorithm: static, sparsity: 0.6}, "
        "{until: 11, algorithm: ste, sparsity: 0.7, update: {freq: 2}}, "
        "{algorithm: set, sparsity: 0.8, update: {freq: 2}}]}",
        "train.ema=0.8", "train.checkpoint={every: 4, keep_last: 2, keep_best: true}"}},
      {"LearnedScales",
       {"quantize={algorithm: qat, scales: learned, start_epoch: 1, param_filter: '*.weight', "
        "calibration: 32}",
        "sparsity={algorithm: rigl, sparsity: 0.8, update: {freq: 3}, layout: csr, "
        "param_filter: fc1.weight}"}},
      {"EarlyStoppingAndBest",
       {"train.early_stopping={patience: 3}",
        "train.checkpoint={every: 7, keep_last: 1, "
        "keep_best: true}"}},
  };
  return all;
}

class KilledRun : public Resume, public testing::WithParamInterface<Variant> {};

TEST_P(KilledRun, EndsAsIfNothingHadHappened) { expect_survives(set(GetParam().settings)); }

INSTANTIATE_TEST_SUITE_P(All, KilledRun, testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

// Layers and batches are large enough for sparse products behind them.
TEST_F(Resume, BehindSparseActivationsEndsAsIfNothingHadHappened) {
  write_text(config(), R"(
data: {type: glyphs, train_size: 490, test_size: 40, validation: 10}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 64}
  - relu
  - semi_sparse_activation
  - {type: linear, name: fc2, out_features: 128}
  - relu
  - {type: linear, name: fc3, out_features: 10}
optimizer: {type: adam, lr: 0.01}
train:
  epochs: 3
  batch_size: 40
  accumulate: 2
  threads: 1
  log_every: 3
  eval_every: 5
  checkpoint: {every: 4, keep_last: 2}
)");
  expect_survives({});
}

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
  const std::vector<std::string> sparse = set(variants()[1].settings);
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
  EXPECT_THAT(ended.err, HasSubstr("there is nothing to resume: '" + run_dir() +
                                   "' holds no config.yaml of a run; start the run without "
                                   "--resume"));
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
  EXPECT_THAT(ended.err, HasSubstr("none of the checkpoints in '" + run_dir() + "' is good: "));
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
}  // namespace lacuna
