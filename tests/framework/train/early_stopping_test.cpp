#include "lacuna/framework/train/early_stopping.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::early_stopping_test {
namespace {

TEST(EarlyStopping, StopsAfterPatienceEvaluationsWithoutAGain) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 2});
  EXPECT_TRUE(stopping.judge(1, 0.5, 10));
  EXPECT_FALSE(stopping.judge(1, 0.4, 10));
  EXPECT_TRUE(stopping.judge(1, 0.6, 10));  // counts anew
  EXPECT_FALSE(stopping.judge(1, 0.6, 10));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_FALSE(stopping.judge(1, 0.1, 10));
  EXPECT_TRUE(stopping.has_stopped());
}

TEST(EarlyStopping, KnowsTheBestThatIsNoGain) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 3, .min_delta = 0.1});
  EXPECT_TRUE(stopping.judge(1, 0.50, 10));
  EXPECT_TRUE(stopping.judge(1, 0.55, 10));
  EXPECT_TRUE(stopping.judge(1, 0.58, 10));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_TRUE(stopping.judge(1, 0.59, 10));  // 0.61 would have been a gain over 0.50
  EXPECT_TRUE(stopping.has_stopped());
}

// A small split has the same accuracy many times while the loss still falls.
TEST(EarlyStopping, TakesTheLowerLossOfEqualScores) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 2});
  EXPECT_TRUE(stopping.judge(1, 0.8, 10, 0.9));
  EXPECT_TRUE(stopping.judge(1, 0.8, 10, 0.8));
  EXPECT_FALSE(stopping.judge(1, 0.7, 10, 0.1));  // the score goes before the loss
  EXPECT_TRUE(stopping.judge(1, 0.8, 10, 0.7));
  EXPECT_FALSE(stopping.judge(1, 0.8, 10, 0.7));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_FALSE(stopping.judge(1, 0.8, 10, 0.75));
  EXPECT_TRUE(stopping.has_stopped());
}

TEST(EarlyStopping, AsksOfALossForAsMuchGainAsOfAScore) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 2, .min_delta = 0.25});
  EXPECT_TRUE(stopping.judge(1, 0.5, 10, 2.0));
  EXPECT_TRUE(stopping.judge(1, 0.5, 10, 1.875));  // the best, and no gain
  EXPECT_TRUE(stopping.judge(1, 0.5, 10, 1.625));
  EXPECT_TRUE(stopping.judge(1, 0.5, 10, 1.5));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_TRUE(stopping.judge(1, 0.5, 10, 1.375));
  EXPECT_TRUE(stopping.has_stopped());
}

// The first counted step is the saved one, unless it was planned for another length.
TEST(EarlyStopping, KeepsItsFirstCountedStepWithItsLength) {
  const EarlyStoppingOptions options{.patience = 1};
  struct Case {
    EarlyStopping saved, resumed;
    int64_t counts_from;
  };
  for (const Case& c :
       {Case{EarlyStopping(options, 0, 50), EarlyStopping(options, 40, 50), 0},
        Case{EarlyStopping(options, 40, 50), EarlyStopping(options, 0, 50), 40},
        Case{EarlyStopping(options, 10, 50), EarlyStopping(options, 40, 60), 40},
        Case{EarlyStopping(options), EarlyStopping(options, 40, 50), 40}}) {  // of `prune`
    StateDict state;
    c.saved.save_to(state);
    EarlyStopping stopping = c.resumed;
    stopping.load_from(state, 10);
    stopping.judge(1, 0.5, 10);
    if (c.counts_from > 0) {
      stopping.judge(c.counts_from - 1, 0.5, 10);
      EXPECT_FALSE(stopping.has_stopped()) << c.counts_from;
    }
    stopping.judge(c.counts_from + 2, 0.5, 10);
    EXPECT_TRUE(stopping.has_stopped()) << c.counts_from;
  }
}

// All evaluations count for a run of an earlier version, however often it is resumed.
TEST(EarlyStopping, CountsAllOfARunOfAnEarlierVersion) {
  StateDict state;
  EarlyStopping(EarlyStoppingOptions{.patience = 1}).save_to(state);
  StateDict earlier;
  for (const auto& [key, value] : state.values()) {
    if (key != "first_counted" && key != "counted_for") earlier.set(key, value);
  }
  for (int resumed = 0; resumed < 2; ++resumed) {
    EarlyStopping stopping(EarlyStoppingOptions{.patience = 1}, 40, 50);
    stopping.load_from(earlier, 10);
    StateDict next;
    stopping.save_to(next);
    earlier = next;
    stopping.judge(1, 0.5, 10);
    stopping.judge(2, 0.5, 10);
    EXPECT_TRUE(stopping.has_stopped());
  }
}

TEST(EarlyStopping, KeepsTheLossesInItsState) {
  const EarlyStoppingOptions options{.patience = 2, .min_delta = 0.25};
  EarlyStopping first(options);
  first.judge(1, 0.5, 10, 2.0);
  first.judge(1, 0.5, 10, 1.875);
  StateDict state;
  first.save_to(state);
  EXPECT_EQ(state.get<double>("best_loss"), 1.875);
  EXPECT_EQ(state.get<double>("loss_to_beat"), 2.0);
  EarlyStopping second(options);
  second.load_from(state, 2);
  EXPECT_FALSE(second.judge(1, 0.5, 10, 1.9));
  EXPECT_TRUE(second.has_stopped());
  EarlyStopping third(options);
  third.load_from(state, 2);
  EXPECT_TRUE(third.judge(1, 0.5, 10, 1.5));
  EXPECT_FALSE(third.has_stopped());
  // An earlier version's state has none: an equal score is no better one.
  StateDict earlier;
  for (const auto& [name, value] : state.values()) {
    if (!name.ends_with("loss") && !name.starts_with("loss")) earlier.set(name, value);
  }
  EarlyStopping old(options);
  old.load_from(earlier, 2);
  EXPECT_FALSE(old.judge(1, 0.5, 10, 0.1));
  EXPECT_TRUE(old.has_stopped());
}

TEST(EarlyStopping, GoesOnWithMorePatience) {
  EarlyStopping first(EarlyStoppingOptions{.patience = 2});
  for (int i = 0; i < 3; ++i) first.judge(1, 0.5, 10);
  ASSERT_TRUE(first.has_stopped());
  StateDict state;
  first.save_to(state);
  EarlyStopping patient(EarlyStoppingOptions{.patience = 3});
  patient.load_from(state, 3);
  EXPECT_FALSE(patient.has_stopped());
  patient.judge(1, 0.5, 10);
  EXPECT_TRUE(patient.has_stopped());
  EarlyStopping none;
  none.load_from(state, 3);
  EXPECT_FALSE(none.has_stopped());
}

TEST(EarlyStopping, NeverStopsWithoutOptionsAndKnowsTheBest) {
  EarlyStopping stopping;
  EXPECT_TRUE(stopping.judge(1, -3.0, 10));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(stopping.judge(1, -3.0, 10));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_TRUE(stopping.judge(1, -2.0, 10));
}

TEST(EarlyStopping, JudgesWhatHasBeenPrunedAnew) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 3});
  EXPECT_TRUE(stopping.judge(1, 0.9, 1000));
  EXPECT_FALSE(stopping.judge(1, 0.8, 1000));
  EXPECT_FALSE(stopping.judge(1, 0.8, 991));  // positions that an update has not filled yet
  EXPECT_TRUE(stopping.judge(1, 0.6, 900));
  EXPECT_TRUE(stopping.judge(1, 0.5, 500));
  EXPECT_FALSE(stopping.judge(1, 0.4, 500));
  EXPECT_TRUE(stopping.judge(1, 0.7, 1000));  // denser, and better
  EXPECT_FALSE(stopping.judge(1, 0.6, 1000));
  EXPECT_FALSE(stopping.judge(1, 0.6, 1000));
  StateDict state;
  stopping.save_to(state);
  EarlyStopping resumed(EarlyStoppingOptions{.patience = 3});
  resumed.load_from(state, 3);
  EXPECT_TRUE(resumed.judge(1, 0.2, 100));
  EXPECT_FALSE(resumed.has_stopped());
  // An earlier version's state tells no nonzeros.
  StateDict earlier;
  for (const auto& [name, value] : state.values()) {
    if (name != "best_nonzeros") earlier.set(name, value);
  }
  EarlyStopping old(EarlyStoppingOptions{.patience = 3});
  old.load_from(earlier, 3);
  EXPECT_FALSE(old.judge(1, 0.2, 100));
  EXPECT_TRUE(old.has_stopped());
}

TEST(EarlyStopping, GoesOnFromItsState) {
  const EarlyStoppingOptions options{.patience = 2};
  EarlyStopping first(options);
  first.judge(1, 0.5, 10);
  first.judge(1, 0.4, 10);
  StateDict state;
  first.save_to(state);
  EXPECT_FALSE(state.contains("best_loss"));
  EarlyStopping second(options);
  second.load_from(state, 2);
  EXPECT_FALSE(second.judge(1, 0.45, 10));
  EXPECT_TRUE(second.has_stopped());
  StateDict stopped;
  second.save_to(stopped);
  EarlyStopping third(options);
  third.load_from(stopped, 2);
  EXPECT_TRUE(third.has_stopped());
  expect_throws<CheckpointError>([&] { third.load_from(stopped, 1); }, "evaluations_without_gain");
}

}  // namespace
}  // namespace lacuna::early_stopping_test
