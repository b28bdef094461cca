// Times of runs that are measured before they begin. How long anything takes is not tested; what is
// measured, and that nothing is left of it, is.
#include "lacuna/framework/train/loop/run_timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "framework/train/tiny_run.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/layouts/cost/kept_times.hpp"
#include "lacuna/framework/train/loop/dense_timing.hpp"
#include "lacuna/framework/train/loop/run_length.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"
#include "state_differences.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::run_timing_test {
namespace {

using testing::IsEmpty;
using testing::StartsWith;

Config tiny(const std::string& sparsity = "null", const std::string& train = "") {
  Config config = parse_yaml(kTinyRun, "run.yaml");
  config.set("sparsity", parse_yaml("value: " + sparsity, "sparsity").get("value"));
  if (!train.empty()) {
    for (const char* key : {"epochs"}) config.get("train").erase(key);
    const Config more = parse_yaml(train, "train");
    for (const auto& [key, value] : more.entries()) config.get("train").set(key, value);
  }
  return config;
}

class RunTiming : public testing::Test {
 protected:
  RunTiming() {
    const char* before = std::getenv("LACUNA_CACHE_DIR");
    before_ = before == nullptr ? "" : before;
    ::setenv("LACUNA_CACHE_DIR", folder_.path().c_str(), 1);
  }
  ~RunTiming() override { ::setenv("LACUNA_CACHE_DIR", before_.c_str(), 1); }

  const TemporaryFolder folder_;
  std::string before_;
};

class MeasuredRun : public RunTiming, public testing::WithParamInterface<const char*> {};

TEST_P(MeasuredRun, HasTheTimesOfAllItsParts) {
  const auto experiment = build_experiment(tiny(GetParam()));
  const std::optional<RunTime> time = measure_run(*experiment, 0.01);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->steps, 18);
  EXPECT_EQ(time->steps_per_epoch, 6);
  EXPECT_GT(time->step, 0.0);
  EXPECT_GT(time->evaluations, 0.0);
  EXPECT_GT(time->checkpoints, 0.0);
  EXPECT_DOUBLE_EQ(time->epoch(), 6 * time->step);
  EXPECT_DOUBLE_EQ(time->training(), 18 * time->step);
  EXPECT_DOUBLE_EQ(time->total(), time->training() + time->evaluations + time->checkpoints);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, MeasuredRun,
    testing::Values(
        "null", "0.8", "{algorithm: rigl, sparsity: 0.8, update: {freq: 4}}",
        "{algorithm: set, sparsity: 0.8, update: {freq: 1}}",
        "{algorithm: gmp, sparsity: {type: polynomial, init: 0.0, final: 0.9, start: 2, "
        "end: 12}, update: {freq: 2, start: 2}}",
        "{algorithm: snfs, sparsity: 0.8, update: {freq: 3}}",
        "[{algorithm: rigl, sparsity: 0.9, param_filter: fc1.weight, update: {freq: 5}}, "
        "{algorithm: static, sparsity: 0.5, param_filter: fc2.weight}]"));

TEST_F(RunTiming, MeasuresNothingThatDiverges) {
  Config config = tiny();
  config.get("optimizer").set("lr", 1e30);
  config.get("optimizer").set("type", "sgd");
  config.get("optimizer").erase("weight_decay");
  const auto experiment = build_experiment(config);
  EXPECT_FALSE(measure_run(*experiment, 0.01));
}

TEST_F(RunTiming, DenseStepIsMeasuredAndKept) {
  const auto experiment = build_experiment(tiny("0.8"));
  const StateDict before = experiment->state_dict();
  const std::optional<DenseStep> dense = dense_step(*experiment, 1.0, 0.5);
  ASSERT_TRUE(dense);
  EXPECT_TRUE(dense->is_measured);
  EXPECT_GT(dense->seconds, 0.0);
  EXPECT_THAT(differences(before, experiment->state_dict()), IsEmpty());
  // It is read again, whatever seed and rate there are.
  Config other = tiny("0.5");
  other.get("train").set("seed", 5);
  other.get("optimizer").set("lr", 0.5);
  EXPECT_EQ(dense_step(*build_experiment(other), 1.0, 0.5)->seconds, dense->seconds);
  // Of another batch it is another step.
  Config larger = tiny("0.8");
  larger.get("train").set("batch_size", 16);
  EXPECT_NE(dense_step(*build_experiment(larger), 1.0, 0.5)->seconds, dense->seconds);
}

// On grids a step takes longer: its time is no other run's, and that of others no time of it.
TEST_F(RunTiming, TheDenseStepOfQuantizedTrainingIsKeptApart) {
  Config quantized = tiny("0.8");
  quantized.set("quantize", Config::map({{"algorithm", "qat"}, {"param_filter", "*.weight"}}));
  const double plain = dense_step(*build_experiment(tiny("0.8")), 1.0, 0.5)->seconds;
  const double on_grids = dense_step(*build_experiment(quantized), 1.0, 0.5)->seconds;
  EXPECT_NE(on_grids, plain);
  EXPECT_EQ(dense_step(*build_experiment(tiny("0.8")), 1.0, 0.5)->seconds, plain);
  EXPECT_EQ(dense_step(*build_experiment(quantized), 1.0, 0.5)->seconds, on_grids);
}

TEST_F(RunTiming, ThereIsNoDenseStepNextToADenseRun) {
  EXPECT_FALSE(dense_step(*build_experiment(tiny()), 1e-3, 0.01));
}

TEST_F(RunTiming, ADenseStepThatWouldTakeTooLongIsPredicted) {
  const auto experiment =
      build_experiment(tiny("{sparsity: 0.9, param_filter: fc1.weight, layout: csr}"));
  const std::optional<DenseStep> dense = dense_step(*experiment, 100.0, 0.01);
  ASSERT_TRUE(dense);
  EXPECT_FALSE(dense->is_measured);
  EXPECT_NEAR(dense->seconds, 100.0, 1.0);  // and what one small weight makes of it
}

TEST_F(RunTiming, ADenseStepThatAnotherProgramMadeLongerIsPredicted) {
  const auto experiment = build_experiment(tiny("{sparsity: 0.8, layout: masked}"));
  // No step takes a nanosecond: the measured one is far longer than a step of such a run.
  const std::optional<DenseStep> dense = dense_step(*experiment, 1e-9, 0.5);
  ASSERT_TRUE(dense);
  EXPECT_FALSE(dense->is_measured);
  EXPECT_DOUBLE_EQ(dense->seconds, 1e-9);
  EXPECT_TRUE(dense_step(*experiment, 1.0, 0.5)->is_measured);  // the longer one was not kept
  // Next to another run, what is kept may be the longer one.
  EXPECT_FALSE(dense_step(*experiment, 1e-9, 0.5)->is_measured);
}

TEST_F(RunTiming, KeptTimesAreOfTheseKernels) {
  EXPECT_FALSE(kept_time("some", "a"));
  keep_time("some", "a", 0.25);
  keep_time("some", "b", 1.5);
  EXPECT_EQ(kept_time("some", "a"), 0.25);
  EXPECT_EQ(kept_time("some", "b"), 1.5);
  EXPECT_FALSE(kept_time("others", "a"));
  write_text(measurement_file("some").string(), "costs of steps, kernels of generation 0\na 3\n");
  EXPECT_FALSE(kept_time("some", "a"));
  keep_time("some", "c", 2.0);
  EXPECT_EQ(kept_time("some", "c"), 2.0);
  EXPECT_FALSE(kept_time("some", "a"));
}

TEST_F(RunTiming, AnExperimentOnGivenDataIsTheSame) {
  const Config config = tiny("{algorithm: rigl, sparsity: 0.8, update: {freq: 4}}");
  const auto read = build_experiment(config.clone());
  Config again = config.clone();
  again.set("data", read->config.get("data").clone());
  const auto given = build_experiment_on(read->data, again);
  EXPECT_THAT(differences(read->state_dict(), given->state_dict()), IsEmpty());
  EXPECT_EQ(read->config.to_yaml(), given->config.to_yaml());
}

TEST_F(RunTiming, SecondsBecomeSteps) {
  Config config = tiny("{algorithm: rigl, sparsity: 0.8, update: {freq: 4}}", "seconds: 2\n");
  ASSERT_TRUE(has_seconds(config));
  const MeasuredLength length = build_for_seconds(config, nullptr);
  const auto steps = config.get("train").get("steps").as<int64_t>();
  EXPECT_FALSE(config.get("train").has("seconds"));
  EXPECT_EQ(length.experiment->total_steps(), steps);
  EXPECT_GT(steps, 1);
  EXPECT_THAT(length.note, StartsWith("length    "));
  // As a run of that many steps has it.
  const auto same = build_experiment(tiny("{algorithm: rigl, sparsity: 0.8, update: {freq: 4}}",
                                          "steps: " + std::to_string(steps)));
  EXPECT_THAT(differences(length.experiment->state_dict(), same->state_dict()), IsEmpty());
  EXPECT_EQ(length.experiment->config.to_yaml(), same->config.to_yaml());
}

TEST_F(RunTiming, SecondsAreCheckedFirst) {
  EXPECT_FALSE(has_seconds(tiny()));
  for (const char* wrong :
       {"seconds: 0\n", "seconds: -1\n", "seconds: soon\n", "seconds: .inf\n"}) {
    expect_throws<ConfigError>([&] { has_seconds(tiny("null", wrong)); },
                               "a number of seconds above 0");
  }
  expect_throws<ConfigError>([&] { has_seconds(tiny("null", "seconds: 5\nsteps: 5\n")); },
                             "`seconds` and `steps` are both given");
  expect_throws<ConfigError>([&] { build_experiment(tiny("null", "seconds: 5\n")); },
                             "give train.steps or train.epochs");
}

}  // namespace
}  // namespace lacuna::run_timing_test
