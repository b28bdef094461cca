#include "lacuna/framework/config/schedule.h"

#include <gmock/gmock.h>

#include <cmath>

#include "throws.h"

namespace lacuna::schedule_test {
namespace {

using Entries = std::vector<Config::Entry>;

Schedule make(Entries entries) { return Schedule::from_config(Config::map(std::move(entries))); }

TEST(Schedule, ConstantsKeepTheirDouble) {
  const Schedule schedule = Schedule::from_config(Config(0.1));
  EXPECT_TRUE(schedule.is_constant());
  EXPECT_EQ(schedule.at(0), 0.1f);
  EXPECT_EQ(schedule.at(1000000, 3), 0.1f);
  EXPECT_EQ(schedule.value_at(7), 0.1);
  EXPECT_EQ(schedule.config().as<double>(), 0.1);
  EXPECT_TRUE(make({{"type", "constant"}, {"value", 0.1}}).is_constant());
}

TEST(Schedule, FollowsTheFormulas) {
  const Schedule linear = make({{"type", "linear"}, {"init", 1.0}, {"slope", -0.25}});
  EXPECT_FALSE(linear.is_constant());
  EXPECT_EQ(linear.at(2), 0.5f);
  EXPECT_EQ(linear.value_at(2), 0.5);
  const Schedule exp = make({{"type", "exp"}, {"init", 0.0}, {"gamma", -1.0}});
  EXPECT_NEAR(exp.at(1), 1.0 - std::exp(-1.0), 1e-6);
  const Schedule power = make({{"type", "power"}, {"init", 8.0}, {"beta", 0.5}});
  EXPECT_EQ(power.at(3), 1.0f);
  const Schedule cosine =
      make({{"type", "cosine"}, {"init", 1.0}, {"half_period", 10}, {"minimum", 0.5}});
  EXPECT_EQ(cosine.at(0), 1.0f);
  EXPECT_NEAR(cosine.at(5), 0.75, 1e-6);
  EXPECT_NEAR(cosine.at(10), 0.5, 1e-6);
}

TEST(Schedule, CosineOnceStaysAtItsMinimum) {
  const auto entries = [](const char* type) {
    return Entries{{"type", type}, {"init", 0.3}, {"half_period", 10}, {"minimum", 0.1}};
  };
  const Schedule once = make(entries("cosine_once")), waves = make(entries("cosine"));
  for (int64_t t = 0; t < 10; ++t) EXPECT_EQ(once.at(t), waves.at(t)) << t;
  for (const int64_t t : {10, 11, 20, 1000000}) EXPECT_EQ(once.at(t), 0.1f) << t;
  EXPECT_NEAR(waves.at(20), 0.3, 1e-6);
  const Schedule part =
      make({{"type", "cosine_once"}, {"init", 1.0}, {"half_period", 2.5}});  // between two steps
  EXPECT_GT(part.at(2), 0.0f);
  EXPECT_EQ(part.at(3), 0.0f);
}

// As after a warm-up, where the cosine is to begin at its end.
TEST(Schedule, CosineOnceMayStartLater) {
  const auto entries = [](Entries more) {
    Entries all{{"type", "cosine_once"}, {"init", 0.3}, {"half_period", 10}, {"minimum", 0.1}};
    all.insert(all.end(), more.begin(), more.end());
    return make(all);
  };
  const Schedule at_once = entries({}), later = entries({{"start", 5}});
  for (int64_t t = 0; t <= 5; ++t) EXPECT_EQ(later.at(t), at_once.at(0)) << t;
  for (int64_t t = 0; t < 20; ++t) EXPECT_EQ(later.at(t + 5), at_once.at(t)) << t;
  EXPECT_EQ(later.at(15), 0.1f);
  expect_throws<ConfigError>(
      [&] {
        entries({{"start", -1}});
      },
      "start: expected an integer of at least 0, found '-1'");
}

TEST(Schedule, CyclingAdvancesByUpdatesNotBySteps) {
  const Schedule schedule = Schedule::from_config(Config::list({0.3, 0.5, 0.8}));
  EXPECT_EQ(schedule.at(100, 0), 0.3f);
  EXPECT_EQ(schedule.at(0, 2), 0.8f);
  EXPECT_EQ(schedule.at(0, 3), 0.3f);
  const Schedule named = make({{"type", "cycling"}, {"values", Config::list({1, 2})}});
  EXPECT_EQ(named.at(0, 1), 2.0f);
}

TEST(Schedule, PolynomialStaysAtItsEnds) {
  const Schedule schedule =
      make({{"type", "polynomial"}, {"init", 0.0}, {"final", 0.8}, {"start", 10}, {"end", 20}});
  EXPECT_EQ(schedule.at(0), 0.0f);
  EXPECT_EQ(schedule.at(10), 0.0f);
  EXPECT_NEAR(schedule.at(15), 0.8 * (1 - 0.125), 1e-6);
  EXPECT_EQ(schedule.at(20), 0.8f);
  EXPECT_EQ(schedule.at(1000), 0.8f);
}

TEST(Schedule, MultiStepDropsAtEachMilestone) {
  const Schedule schedule =
      make({{"type", "multi_step"}, {"init", 1.0}, {"milestones", Config::list({30, 10})}});
  EXPECT_EQ(schedule.at(9), 1.0f);
  EXPECT_EQ(schedule.at(10), 0.1f);
  EXPECT_EQ(schedule.at(29), 0.1f);
  EXPECT_NEAR(schedule.at(30), 0.01, 1e-8);
}

TEST(Schedule, MessagesSayWhatIsWrong) {
  expect_throws<ConfigError>([] { Schedule::from_config(Config("fast")); },
                             "expected a number, a list of numbers or a map with `type`, found "
                             "'fast'");
  expect_throws<ConfigError>([] { make({{"init", 1.0}}); }, "type: a required key is missing");
  expect_throws<ConfigError>(
      [] {
        make({{"type", "cosin"}});
      },
      "unknown schedule 'cosin'; did you mean 'cosine'?");
  expect_throws<ConfigError>(
      [] {
        make({{"type", "linear"}, {"init", 1.0}});
      },
      "slope: a required key is missing");
  expect_throws<ConfigError>(
      [] {
        make({{"type", "cosine"}, {"init", 1.0}, {"half_period", 0}});
      },
      "half_period: expected a number of steps above 0, found '0'");
  expect_throws<ConfigError>(
      [] {
        make({{"type", "cosine_once"}, {"init", 1.0}, {"half_period", -1}});
      },
      "half_period: expected a number of steps above 0, found '-1'");
  expect_throws<ConfigError>([] { Schedule::from_config(Config::list()); },
                             "expected at least one value, found a list of 0 values");
  expect_throws<ConfigError>(
      [] {
        make({{"type", "polynomial"}, {"init", 0.0}, {"final", 1.0}, {"start", 5}, {"end", 5}});
      },
      "end: expected a step after start (5), found '5'");
}

TEST(UpdateSchedule, IsEveryStepByDefault) {
  const UpdateSchedule every = UpdateSchedule::from_config(Config());
  for (const int64_t step : {0, 1, 7}) EXPECT_TRUE(every.is_update(step));
}

TEST(UpdateSchedule, StopIsExclusive) {
  const auto schedule =
      UpdateSchedule::from_config(Config::map({{"freq", 3}, {"start", 2}, {"stop", 8}}));
  std::vector<int64_t> updates;
  for (int64_t step = 0; step < 20; ++step) {
    if (schedule.is_update(step)) updates.push_back(step);
  }
  EXPECT_THAT(updates, testing::ElementsAre(2, 5));
}

TEST(UpdateSchedule, TakesListedStepsInAnyOrder) {
  const auto schedule =
      UpdateSchedule::from_config(Config::map({{"steps", Config::list({40, 3, 9})}}));
  EXPECT_TRUE(schedule.is_update(3));
  EXPECT_TRUE(schedule.is_update(40));
  EXPECT_FALSE(schedule.is_update(0));
  EXPECT_FALSE(UpdateSchedule::at_steps({}).is_update(0));
}

TEST(UpdateSchedule, MessagesSayWhatIsWrong) {
  const auto from = [](Entries entries) {
    return UpdateSchedule::from_config(Config::map(std::move(entries)));
  };
  expect_throws<ConfigError>([] { UpdateSchedule::from_config(Config(5)); },
                             "expected a map with `freq` (and `start`, `stop`) or with `steps`");
  expect_throws<ConfigError>(
      [&] {
        from({{"freq", 0}});
      },
      "freq: expected an integer of at least 1, found '0'");
  expect_throws<ConfigError>(
      [&] {
        from({{"freq", 1}, {"start", -1}});
      },
      "start: expected an integer of at least 0, found '-1'");
  expect_throws<ConfigError>(
      [&] {
        from({{"freq", 1}, {"start", 5}, {"stop", 5}});
      },
      "stop: expected a step after start (5), found '5'");
  expect_throws<ConfigError>(
      [&] {
        from({{"freq", 1}, {"steps", Config::list({1})}});
      },
      "has both `freq` and `steps`; give one of them");
  expect_throws<ConfigError>([] { UpdateSchedule::every(0); },
                             "freq: expected at least 1 step, found 0");
  expect_throws<ConfigError>([] { UpdateSchedule::every(1, -2); },
                             "start: expected a step of at least 0, found -2");
}

}  // namespace
}  // namespace lacuna::schedule_test
