// What early stopping judges by, and how a run that it has ended goes on.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::early_stopping_runs_test {
namespace {

using EarlyStoppingOfRuns = RunFixture;

// As the runs that were more patient, or had no early stopping, from the start.
TEST_F(EarlyStoppingOfRuns, GoesOnWhereEarlyStoppingHasEndedIt) {
  const std::vector<std::string> frozen = {"--set", "optimizer={type: sgd, lr: 0}", "--set",
                                           "train.epochs=5", "--set"};
  const auto with = [&](const std::string& stopping) {
    std::vector<std::string> all = frozen;
    all.push_back("train.early_stopping=" + stopping);
    return all;
  };
  for (const auto& [change, stopping, steps] :
       {std::tuple{"train.early_stopping.patience=4", "{patience: 4}", 25},
        std::tuple{"train.early_stopping=null", "null", 30}}) {
    const std::string one = std::string("one ") + std::to_string(steps),
                      other = std::string("other ") + std::to_string(steps);
    ASSERT_EQ(train(with("{patience: 2}"), one).code, 0);
    ASSERT_EQ(summary(run_dir(one)).required<int>("steps"), 15);
    const Ended gone_on =
        run_lacuna({"train", "--resume", "--run-dir", run_dir(one), "--set", change});
    ASSERT_EQ(gone_on.code, 0) << gone_on.err;
    EXPECT_EQ(summary(run_dir(one)).required<int>("steps"), steps);
    ASSERT_EQ(train(with(stopping), other).code, 0);
    EXPECT_EQ(differences(read_checkpoint(checkpoint(steps, one)).state,
                          read_checkpoint(checkpoint(steps, other)).state),
              std::vector<std::string>());
    EXPECT_EQ(timeless_events(run_dir(one)), timeless_events(run_dir(other)));
  }
}

// It counts from the last change of nonzeros on, at step 24. It would end at step 10 otherwise.
TEST_F(EarlyStoppingOfRuns, WaitsUntilTheModelIsPruned) {
  const std::vector<std::string> frozen = {
      "--set", "optimizer={type: sgd, lr: 0}",       "--set", "train.epochs=10",
      "--set", "train.early_stopping={patience: 1}", "--set"};
  for (const char* sparsity :
       {"{algorithm: gmp, sparsity: 0.8, update: {freq: 4, start: 16, stop: 25}}",
        "{algorithm: acdc, sparsity: 0.8, update: {freq: 8, stop: 25}}",
        "{phases: [{until: 24, algorithm: dense}, {algorithm: static, sparsity: 0.8}]}"}) {
    std::vector<std::string> words = frozen;
    words.push_back(std::string("sparsity=") + sparsity);
    const std::string name = std::string("run ").append(sparsity, 12, 4);
    const Ended ended = train(words, name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config end = summary(run_dir(name));
    EXPECT_GE(end.required<int>("steps"), 25) << sparsity;
    EXPECT_LE(end.required<int>("steps"), 30) << sparsity;
    EXPECT_TRUE(end.required<bool>("stopped_early")) << sparsity;
    EXPECT_LT(end.required<double>("nnz"), 0.5 * end.required<double>("numel")) << sparsity;
  }
}

// Quantization begins after step 24. What was evaluated before, at step 24 too, is not compared
// with what is quantized.
TEST_F(EarlyStoppingOfRuns, WaitsUntilQuantizationBegins) {
  for (const std::string every : {"5", "6", "8"}) {
    const std::string name = "every" + every;
    const Ended ended =
        train({"--set", "optimizer={type: sgd, lr: 0}", "--set", "train.epochs=10", "--set",
               "train.early_stopping={patience: 1}", "--set", "train.eval_every=" + every, "--set",
               "quantize={algorithm: qat, start_epoch: 4, param_filter: '*.weight', "
               "calibration: 40}"},
              name);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const Config end = summary(run_dir(name));
    EXPECT_GT(end.required<int>("best_step"), 24) << every;
    EXPECT_GT(end.required<int>("steps"), end.required<int>("best_step")) << every;
    EXPECT_LE(end.required<int>("steps"), 48) << every;
    EXPECT_TRUE(end.required<bool>("stopped_early")) << every;
  }
}

// Numbers of nonzeros that do not change are not waited for, and those of the length that the run
// has now are.
TEST_F(EarlyStoppingOfRuns, CountsByThePlanOfTheLengthThatTheRunHas) {
  const std::vector<std::string> frozen = {"--set", "optimizer={type: sgd, lr: 0}", "--set",
                                           "train.early_stopping={patience: 1}", "--set"};
  std::vector<std::string> constant = frozen;
  constant.insert(constant.end(), {"sparsity={algorithm: set, sparsity: 0.8, update: {freq: 20}}",
                                   "--set", "train.epochs=10"});
  ASSERT_EQ(train(constant, "constant").code, 0);
  EXPECT_EQ(summary(run_dir("constant")).required<int>("steps"), 10);
  std::vector<std::string> pruned = frozen;
  pruned.insert(pruned.end(), {"sparsity={algorithm: acdc, sparsity: 0.8, update: {freq: 8}}",
                               "--set", "train.steps=8"});
  const Ended ended = train(pruned, "longer");
  ASSERT_EQ(ended.code, 0) << ended.err;
  ASSERT_EQ(
      run_lacuna({"train", "--resume", "--run-dir", run_dir("longer"), "--set", "train.steps=60"})
          .code,
      0);
  EXPECT_EQ(summary(run_dir("longer")).required<int>("steps"), 60);
}

// Of equal accuracies the lower loss is better: training goes on while the loss falls, and best.h5
// is of the lowest.
TEST_F(EarlyStoppingOfRuns, GoesByTheLossWhereAccuraciesAreEqual) {
  const Ended ended =
      train({"--set", "data={type: glyphs, train_size: 100, test_size: 30, validation: 2}", "--set",
             "optimizer={type: sgd, lr: 0.00001}", "--set", "train.early_stopping={patience: 1}"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  double last = std::numeric_limits<double>::infinity();
  std::string best_step;
  for (const Config& event : events(run_dir())) {
    if (event.at("split").text() != "validation") continue;
    EXPECT_EQ(event.required<double>("accuracy"),
              summary(run_dir()).required<double>("validation_accuracy"));
    const auto loss = event.required<double>("loss");
    if (loss >= last) break;
    last = loss;
    best_step = event.at("step").text();
  }
  EXPECT_EQ(summary(run_dir()).at("best_step").text(), best_step);
  EXPECT_EQ(std::to_string(read_checkpoint(run_dir() + "/checkpoints/best.h5").step), best_step);
  EXPECT_GT(summary(run_dir()).required<int>("best_step"), 5);
}

}  // namespace
}  // namespace lacuna::early_stopping_runs_test
