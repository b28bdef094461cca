#include "lacuna/framework/train/loop/run_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lacuna/framework/core/error.h"
#include "state_differences.h"
#include "throws.h"

namespace lacuna::run_state_test {
namespace {

RunState some_state() {
  RunState state;
  state.add_step({.loss = {.labels = 6.0, .weights = {.labels = 4}},
                  .correct = 1,
                  .examples = 4,
                  .answers = 4},
                 0.5, 3);
  state.add_step({.loss = {.labels = 2.0, .weights = {.labels = 4}},
                  .correct = 3,
                  .examples = 4,
                  .answers = 4},
                 0.25, 3);
  state.stopping.judge(1, 0.5, 10);
  state.last_evaluated_step = 2;
  state.training_flops = 1.5e12;
  state.test = {.loss = 1.5, .accuracy = 0.25, .examples = 8};
  state.best = {.step = 1, .test = state.test, .validation = std::nullopt};
  return state;
}

TEST(RunState, CountsStepsAndBeginsEpochsAnew) {
  RunState state = some_state();
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.examples, 8);
  EXPECT_EQ(state.train_seconds, 0.75);
  EXPECT_EQ(state.epoch.mean_loss(), 1.0);
  EXPECT_EQ(state.epoch.accuracy(), 0.5);
  state.add_step({.loss = {.labels = 4.0, .weights = {.labels = 2}},
                  .correct = 0,
                  .examples = 2,
                  .answers = 2},
                 0.25, 3);
  EXPECT_EQ(state.last_epoch_loss, 1.2);
  EXPECT_EQ(state.epoch.examples, 0);
  EXPECT_EQ(state.window.examples, 10);
}

TEST(RunState, ComesBackFromItsState) {
  const StateDict saved = some_state().state_dict();
  RunState loaded;
  loaded.load_state_dict(saved);
  EXPECT_THAT(differences(loaded.state_dict(), saved), testing::IsEmpty());
  EXPECT_EQ(loaded.test->accuracy, 0.25);
  EXPECT_EQ(loaded.best->step, 1);
  EXPECT_EQ(loaded.best->test->loss, 1.5);
  EXPECT_FALSE(loaded.best->validation.has_value());
  EXPECT_EQ(loaded.train_seconds, 0.0);  // an attribute of the checkpoint
  EXPECT_EQ(loaded.training_flops, 1.5e12);
}

TEST(RunState, KnowsNoFlopsOfARunOfAVersionThatDidNotCountThem) {
  RunState earlier = some_state();
  earlier.training_flops.reset();
  RunState loaded;
  loaded.load_state_dict(earlier.state_dict());
  EXPECT_EQ(loaded.training_flops, std::nullopt);
  EXPECT_FALSE(loaded.state_dict().contains("training_flops"));
}

TEST(RunState, TakesRegressionsLackOfAnAccuracy) {
  RunState state = some_state();
  state.test->accuracy = std::numeric_limits<double>::quiet_NaN();
  RunState loaded;
  loaded.load_state_dict(state.state_dict());
  EXPECT_EQ(loaded.test->loss, 1.5);
  EXPECT_TRUE(std::isnan(loaded.test->accuracy));
}

TEST(RunState, RefusesWhatCannotBe) {
  const auto with = [](const char* name, StateDict::Value value) {
    StateDict state = some_state().state_dict();
    state.set(name, std::move(value));
    RunState loaded;
    loaded.load_state_dict(state);
  };
  expect_throws<CheckpointError>([&] { with("step", int64_t{-1}); }, "step");
  expect_throws<CheckpointError>([&] { with("epoch_correct", int64_t{9}); }, "epoch_correct");
  expect_throws<CheckpointError>([&] { with("last_evaluated_step", int64_t{3}); },
                                 "last_evaluated_step");
  expect_throws<CheckpointError>([&] { with("test_accuracy", 1.5); }, "test_accuracy");
  expect_throws<CheckpointError>([&] { with("training_flops", -1.0); }, "training_flops");
  expect_throws<CheckpointError>([&] { with("test_top5_accuracy", -0.5); }, "test_top5_accuracy");
}

TEST(RunState, KeepsTheTop5AccuracyWhereThereIsOne) {
  RunState state = some_state(), loaded;
  EXPECT_FALSE(state.state_dict().contains("test_top5_accuracy"));
  state.test->top5_accuracy = 0.75;
  loaded.load_state_dict(state.state_dict());
  EXPECT_EQ(loaded.test->top5_accuracy, 0.75);
}

TEST(RunState, CountsSeveralAnswersToAnExample) {
  RunState state, loaded;
  state.add_step({.loss = {.labels = 6.0, .weights = {.labels = 4}},
                  .correct = 9,
                  .examples = 4,
                  .answers = 12},
                 0.5, 3);
  EXPECT_EQ(state.epoch.accuracy(), 0.75);
  loaded.load_state_dict(state.state_dict(), 3);
  EXPECT_EQ(loaded.epoch.correct, 9);
  expect_throws<CheckpointError>([&] { loaded.load_state_dict(state.state_dict(), 2); },
                                 "epoch_answers");
}

TEST(RunState, AClockThatRunsBackwardsTakesNoTime) {
  RunState state;
  state.add_step({.loss = 1.0, .correct = 0, .examples = 1, .answers = 1}, 0.5, 3);
  state.add_step({.loss = 1.0, .correct = 0, .examples = 1, .answers = 1}, -2.0, 3);
  EXPECT_EQ(state.train_seconds, 0.5);
  EXPECT_EQ(state.step, 2);
}

}  // namespace
}  // namespace lacuna::run_state_test
