#include "lacuna/framework/train/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lacuna/framework/core/error.h"
#include "state_differences.h"
#include "throws.h"

namespace lacuna {
namespace {

RunState some_state() {
  RunState state;
  state.add_step({.loss = 6.0, .correct = 1, .examples = 4}, 0.5, 3);
  state.add_step({.loss = 2.0, .correct = 3, .examples = 4}, 0.25, 3);
  state.stopping.judge(0.5);
  state.last_evaluated_step = 2;
  state.test = {.loss = 1.5, .accuracy = 0.25, .examples = 8};
  return state;
}

TEST(RunState, CountsStepsAndBeginsEpochsAnew) {
  RunState state = some_state();
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.examples, 8);
  EXPECT_EQ(state.train_seconds, 0.75);
  EXPECT_EQ(state.epoch.mean_loss(), 1.0);
  EXPECT_EQ(state.epoch.accuracy(), 0.5);
  state.add_step({.loss = 4.0, .correct = 0, .examples = 2}, 0.25, 3);
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
  EXPECT_EQ(loaded.train_seconds, 0.0);  // an attribute of the checkpoint
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
}

}  // namespace
}  // namespace lacuna
