// Runs trained, used and looked at by functions, without the program.
#include "lacuna/framework/program/actions/train_run.h"

#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "framework/program/runs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/interop/load_run.h"
#include "lacuna/framework/program/actions/compare_runs.h"
#include "lacuna/framework/program/actions/evaluate_run.h"
#include "lacuna/framework/program/actions/plan_run.h"
#include "lacuna/framework/program/actions/run_records.h"
#include "lacuna/framework/train/builtins.h"
#include "throws.h"

namespace lacuna::train_run_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TrainRun : public testing::Test {
 protected:
  TrainRun() { register_builtins(); }

  std::string run_dir(const std::string& name = "run") const { return folder_ / name; }
  TrainRequest request(const std::string& name = "run") const {
    return {.config = {.tree = parse_yaml(kTinyRun, "tiny")}, .run_dir = run_dir(name)};
  }

  const TemporaryFolder folder_;
};

TEST_F(TrainRun, StopsWhenTheCallerAsksAndGoesOnBitForBit) {
  EXPECT_EQ(train_run(request("whole")).end, RunEnd::Finished);
  TrainRequest stopped = request();
  std::vector<int64_t> steps;
  stopped.on_step = [&](const TrainedStep& step) {
    steps.push_back(step.step);
    EXPECT_TRUE(std::isfinite(step.loss));
    return step.step < 7;
  };
  const TrainedRun run = train_run(stopped);
  EXPECT_EQ(run.end, RunEnd::Stopped);
  EXPECT_EQ(run.step, 7);
  EXPECT_TRUE(run.summary.is_null());
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7));

  const TrainedRun ended = train_run({.run_dir = run_dir(), .resume = true});
  EXPECT_EQ(ended.end, RunEnd::Finished);
  EXPECT_EQ(ended.step, 18);
  EXPECT_EQ(ended.summary.required<int64_t>("steps"), 18);
  EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir("whole")));
}

TEST_F(TrainRun, HandsTheNewestEventsToTheCaller) {
  TrainRequest watched = request();
  int changes = 0;
  Config last;
  watched.on_step = [&](const TrainedStep& step) {
    changes += step.has_new_metrics ? 1 : 0;
    last = step.metrics;
    return true;
  };
  train_run(watched);
  // Training's events of steps 3, 6, … 15 and the evaluations of steps 5, 10 and 15, which are
  // handed on with the next step; those of the last one have no call behind them.
  EXPECT_EQ(last.peek("train.step").as<int64_t>(), 15);
  EXPECT_EQ(last.peek("test.step").as<int64_t>(), 15);
  EXPECT_EQ(changes, 7);
}

TEST_F(TrainRun, EndsByWhatTheCallerThrowsAndLetsAnotherTrain) {
  TrainRequest failing = request();
  failing.on_step = [](const TrainedStep& step) -> bool {
    if (step.step == 6) throw std::runtime_error("enough");
    return true;
  };
  EXPECT_THROW(train_run(failing), std::runtime_error);
  EXPECT_EQ(train_run({.run_dir = run_dir(), .resume = true}).end, RunEnd::Finished);
}

TEST_F(TrainRun, RefusesAnotherTrainingMeanwhile) {
  TrainRequest outer = request();
  outer.on_step = [&](const TrainedStep&) {
    expect_throws<StateError>([&] { train_run(request("inner")); },
                              "another training is running in this process");
    return false;
  };
  train_run(outer);
}

TEST_F(TrainRun, NeedsAConfigurationAndAFolder) {
  expect_throws<ConfigError>([] { train_run({}); }, "needs a configuration");
  TrainRequest nowhere = request();
  nowhere.run_dir.reset();
  expect_throws<ConfigError>([&] { train_run(nowhere); }, "needs a folder");
}

TEST_F(TrainRun, LeavesWhatOtherFunctionsRead) {
  const TrainedRun run = train_run(request());
  const auto metrics = read_metrics(run_dir());
  EXPECT_THAT(metrics.at("train").numbers.at("step"), ElementsAre(3, 6, 9, 12, 15, 18));
  EXPECT_THAT(metrics.at("test").numbers.at("step"), ElementsAre(5, 10, 15, 18));
  EXPECT_EQ(metrics.at("test").numbers.at("accuracy").size(), 4u);
  EXPECT_EQ(read_summary(run_dir()), run.summary);
  EXPECT_EQ(compare_runs({run_dir()}).at("runs").items().size(), 1u);

  const Config test = evaluate_run(run_dir()).splits.items().back();
  EXPECT_EQ(test.required<std::string>("split"), "test");
  EXPECT_EQ(test.required<double>("loss"), run.summary.required<double>("test_loss"));
}

TEST_F(TrainRun, IsPlannedWithoutTraining) {
  const RunPlan plan = plan_run({.tree = parse_yaml(kTinyRun, "tiny")});
  EXPECT_EQ(plan.report.required<int64_t>("steps"), 18);
  EXPECT_FALSE(plan.report.has("time"));
  EXPECT_THAT(plan.text, HasSubstr("18 steps, 6 in an epoch"));
  EXPECT_THAT(plan.text, testing::Not(HasSubstr("per step")));
  EXPECT_EQ(plan.config.peek("train.batch_size").as<int64_t>(), 8);
}

TEST_F(TrainRun, PredictsAndEvaluatesExamplesWhereTheyLie) {
  train_run(request());
  const LoadedRun run = load_run(run_dir());
  const auto numel = static_cast<size_t>(run.inputs.example_shape.numel());
  std::vector<uint8_t> bytes(3 * numel);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 % 256);
  std::vector<int64_t> sizes{3};
  for (const int64_t size : run.inputs.example_shape.sizes()) sizes.push_back(size);
  const Shape shape{std::span<const int64_t>(sizes)};
  const Tensor outputs = run.predict({.example_shape = run.inputs.example_shape, .inputs = bytes});
  const Tensor same = run.predict(ExampleView{.shape = shape, .values = bytes.data()});
  EXPECT_EQ(outputs.to_vector(), same.to_vector());

  EXPECT_TRUE(run.has_classes());
  const Evaluation all = run.evaluate(
      {.example_shape = run.inputs.example_shape, .inputs = bytes, .labels = {0, 1, 2}});
  EXPECT_EQ(all.examples, 3);
  EXPECT_TRUE(std::isfinite(all.loss));
  expect_throws<DataError>(
      [&] {
        run.predict(ExampleView{.shape = Shape{3, 5}, .values = bytes.data()});
      },
      "the model was trained on");
}

}  // namespace
}  // namespace lacuna::train_run_test
