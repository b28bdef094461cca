#include "lacuna/framework/report/equal_budget.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/report/run_table.hpp"
#include "throws.h"

namespace lacuna::equal_budget_test {
namespace {

/// Evaluations at steps 10, 20, …, each step taking as long.
RunData run_of(const std::string& name, int evaluations, double seconds_per_step) {
  RunData run{.folder = name, .name = name};
  for (int i = 1; i <= evaluations; ++i) {
    const double step = 10.0 * i;
    run.splits["test"]["loss"].add(step, 1.0 / i);
    run.splits["test"]["accuracy"].add(step, 0.1 * i);
    run.step_seconds.add(step, seconds_per_step);
  }
  run.summary = Config::map({{"steps", 10 * evaluations}, {"train_seconds", 1.0}});
  return run;
}

TEST(EqualBudget, TakesRunsAtTheStepThatAllHaveReached) {
  const EqualBudget equal =
      cut_to_equal_budget({run_of("a", 5, 0.1), run_of("b", 3, 0.1)}, Budget::Step);
  EXPECT_EQ(equal.most, 30.0);
  EXPECT_EQ(equal.in_words(Budget::Step), "after 30 steps");
  EXPECT_TRUE(equal.runs[0].remarks.empty());
  const RunResult cut = result_of(equal.runs[0]), whole = result_of(equal.runs[1]);
  EXPECT_DOUBLE_EQ(cut.accuracy, 0.3);
  EXPECT_DOUBLE_EQ(cut.best_accuracy, 0.3);
  EXPECT_EQ(cut.step, 30.0);
  EXPECT_DOUBLE_EQ(cut.train_seconds, 3.0);
  EXPECT_DOUBLE_EQ(whole.accuracy, 0.3);
}

TEST(EqualBudget, TakesRunsAtTheSecondsThatAllHaveTrainedFor) {
  // 2.5 s and 0.75 s: at 0.75 s the first one has done 15 steps.
  const EqualBudget equal =
      cut_to_equal_budget({run_of("slow", 5, 0.05), run_of("fast", 5, 0.015)}, Budget::Seconds);
  EXPECT_DOUBLE_EQ(equal.most, 0.75);
  EXPECT_EQ(equal.in_words(Budget::Seconds), "after 0.75 s of training");
  EXPECT_EQ(result_of(equal.runs[0]).step, 10.0);
  EXPECT_DOUBLE_EQ(result_of(equal.runs[0]).accuracy, 0.1);
  EXPECT_EQ(result_of(equal.runs[1]).step, 50.0);
}

TEST(EqualBudget, KeepsTheFirstResultOfARunThatHasNoneBefore) {
  const EqualBudget equal =
      cut_to_equal_budget({run_of("slow", 2, 1.0), run_of("fast", 1, 0.1)}, Budget::Seconds);
  EXPECT_DOUBLE_EQ(equal.most, 1.0);
  EXPECT_EQ(result_of(equal.runs[0]).step, 10.0);
  EXPECT_THAT(equal.runs[0].remarks,
              testing::ElementsAre("is compared by its first evaluation, after 10 s of training"));
}

TEST(EqualBudget, CountsTheNonzerosOfThatStep) {
  RunData pruned = run_of("pruned", 5, 0.1);
  LayerData& layer = pruned.layers.emplace_back();
  for (const auto& [step, nnz] : {std::pair(15.0, 80.0), {25.0, 60.0}, {45.0, 20.0}}) {
    layer.nnz.add(step, nnz);
  }
  pruned.summary = Config::map(
      {{"steps", 50}, {"nnz", 30}, {"numel", 110}, {"parameter_bytes", 1000}});  // ten dense ones
  RunData stopped = pruned;
  stopped.summary = pruned.summary.clone();
  stopped.summary.set("stopped_early", true);
  stopped.summary.set("best_step", 40);
  const EqualBudget equal =
      cut_to_equal_budget({pruned, stopped, run_of("short", 3, 0.1)}, Budget::Step);
  for (const size_t i : {0u, 1u}) {
    const RunResult result = result_of(equal.runs[i]);
    EXPECT_EQ(result.step, 30.0);
    EXPECT_EQ(result.nnz, 70.0);
    EXPECT_DOUBLE_EQ(result.density, 70.0 / 110.0);
    EXPECT_TRUE(std::isnan(result.parameter_bytes));
  }
}

TEST(EqualBudget, RefusesRunsWithoutResultsOrTimes) {
  const RunData empty{.folder = "a", .name = "a"};
  expect_throws<DataError>([&] { cut_to_equal_budget({empty}, Budget::Step); },
                           "run 'a' has no result yet");
  RunData timeless = run_of("b", 2, 0.1);
  timeless.step_seconds = {};
  expect_throws<DataError>([&] { cut_to_equal_budget({timeless}, Budget::Seconds); },
                           "run 'b' has no times of training steps");
  EXPECT_EQ(cut_to_equal_budget({timeless}, Budget::Step).most, 20.0);
}

}  // namespace
}  // namespace lacuna::equal_budget_test
