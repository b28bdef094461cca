#include "lacuna/framework/train/early_stopping.h"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna {
namespace {

TEST(EarlyStopping, StopsAfterPatienceEvaluationsWithoutAGain) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 2});
  EXPECT_TRUE(stopping.judge(0.5));
  EXPECT_FALSE(stopping.judge(0.4));
  EXPECT_TRUE(stopping.judge(0.6));  // counts anew
  EXPECT_FALSE(stopping.judge(0.6));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_FALSE(stopping.judge(0.1));
  EXPECT_TRUE(stopping.has_stopped());
}

TEST(EarlyStopping, KnowsTheBestThatIsNoGain) {
  EarlyStopping stopping(EarlyStoppingOptions{.patience = 3, .min_delta = 0.1});
  EXPECT_TRUE(stopping.judge(0.50));
  EXPECT_TRUE(stopping.judge(0.55));
  EXPECT_TRUE(stopping.judge(0.58));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_TRUE(stopping.judge(0.59));  // 0.61 would have been a gain over 0.50
  EXPECT_TRUE(stopping.has_stopped());
}

TEST(EarlyStopping, NeverStopsWithoutOptionsAndKnowsTheBest) {
  EarlyStopping stopping;
  EXPECT_TRUE(stopping.judge(-3.0));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(stopping.judge(-3.0));
  EXPECT_FALSE(stopping.has_stopped());
  EXPECT_TRUE(stopping.judge(-2.0));
}

TEST(EarlyStopping, GoesOnFromItsState) {
  const EarlyStoppingOptions options{.patience = 2};
  EarlyStopping first(options);
  first.judge(0.5);
  first.judge(0.4);
  StateDict state;
  first.save_to(state);
  EarlyStopping second(options);
  second.load_from(state, 2);
  EXPECT_FALSE(second.judge(0.45));
  EXPECT_TRUE(second.has_stopped());
  StateDict stopped;
  second.save_to(stopped);
  EarlyStopping third(options);
  third.load_from(stopped, 2);
  EXPECT_TRUE(third.has_stopped());
  expect_throws<CheckpointError>([&] { third.load_from(stopped, 1); }, "evaluations_without_gain");
}

}  // namespace
}  // namespace lacuna
