// What `plan`, the end of a run and summary.json have of times; train.seconds; compare --by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::run_time_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RunTimes : public RunFixture {
 protected:
  const std::vector<std::string> sparse_{
      "--set",
      "sparsity={algorithm: rigl, sparsity: 0.8, param_filter: fc1.weight, "
      "update: {freq: 4}}"};

  Ended timed(std::vector<std::string> more, const std::string& name = "run") const {
    more.insert(more.end(), sparse_.begin(), sparse_.end());
    return train(more, name);
  }
};

TEST_F(RunTimes, PlanComparesWithDense) {
  std::vector<std::string> words{"plan", config()};
  words.insert(words.end(), sparse_.begin(), sparse_.end());
  const Ended text = run_lacuna(words);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("\ntime: [0-9.]+ m?s per step, [0-9.]+ m?s per epoch, "));
  EXPECT_THAT(text.out,
              ContainsRegex("\ndense: [0-9.]+ m?s per step, .* \\((measured|predicted)\\)\n"));
  EXPECT_THAT(text.out,
              ContainsRegex("\n[0-9.]+ times (faster|slower) than dense; 4.65 times less arith"));
  words.emplace_back("--json");
  const Config time = parse_yaml(run_lacuna(words).out, "plan").at("time");
  EXPECT_DOUBLE_EQ(time.at("training_seconds").as<double>(),
                   18 * time.at("step_seconds").as<double>());
  EXPECT_DOUBLE_EQ(time.at("dense_epoch_seconds").as<double>(),
                   6 * time.at("dense_step_seconds").as<double>());
  EXPECT_DOUBLE_EQ(time.at("speedup").as<double>(), time.at("dense_step_seconds").as<double>() /
                                                        time.at("step_seconds").as<double>());
  EXPECT_TRUE(time.has("dense_step_is_measured"));  // false beside other programs
}

TEST_F(RunTimes, PlanOfADenseRunHasNothingToCompare) {
  const Ended ended = run_lacuna({"plan", config()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("\ntime: "));
  EXPECT_THAT(ended.out, Not(HasSubstr("\ndense: ")));
}

TEST_F(RunTimes, TheEndOfASparseRunComparesWithDense) {
  const Ended ended = timed({});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, ContainsRegex("\nspeed     [0-9.]+ times (faster|slower) than dense; "));
  const Config end = summary(run_dir());
  EXPECT_DOUBLE_EQ(end.at("step_seconds").as<double>(), end.at("train_seconds").as<double>() / 18);
  EXPECT_DOUBLE_EQ(end.at("speedup").as<double>(),
                   end.at("dense_step_seconds").as<double>() / end.at("step_seconds").as<double>());
  ASSERT_EQ(train({}, "dense").code, 0);
  EXPECT_TRUE(summary(run_dir("dense")).has("step_seconds"));
  EXPECT_FALSE(summary(run_dir("dense")).has("speedup"));
}

TEST_F(RunTimes, SecondsAreMadeSteps) {
  const Ended ended = timed({"--set", "train.seconds=1", "--profile"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("\nlength    "));
  const Config written = load_yaml(run_dir() + "/config.yaml");
  const auto steps = written.at("train").at("steps").as<int64_t>();
  EXPECT_FALSE(written.at("train").has("seconds"));
  EXPECT_EQ(summary(run_dir()).at("steps").as<int64_t>(), steps);
  // The configuration alone makes the same run.
  const Ended again =
      run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("again")});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(differences(find_checkpoint(run_dir()).read().state,
                          find_checkpoint(run_dir("again")).read().state),
              IsEmpty());
  EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir("again")));
}

// The rate would be negative after 99,000 steps: fewer than were tried first, more than there are.
TEST_F(RunTimes, SecondsAreHeldAgainstSchedulesOfTheirStepsAlone) {
  const std::string fits = "{type: linear, init: 0.1, slope: -1.01e-6}";
  const Ended ended = train({"--set", "train.seconds=0.1", "--set", "optimizer.lr=" + fits});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_LT(summary(run_dir()).at("steps").as<int64_t>(), 99'000);
  const Ended wrong = train({"--set", "train.seconds=0.5", "--set",
                             "optimizer.lr={type: linear, init: 0.1, slope: -0.09}"},
                            "wrong");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("the learning-rate schedule gives -0.08"));  // when measured
}

TEST_F(RunTimes, ARunOfSecondsResumesWithItsSteps) {
  const std::vector<std::string> words{"train",   config(), "--run-dir",
                                       run_dir(), "--set",  "train.seconds=1"};
  ASSERT_EQ(run_lacuna(words, {.fault = "step.between:7:interrupt"}).code, 130);
  const auto steps = load_yaml(run_dir() + "/config.yaml").at("train").at("steps").as<int64_t>();
  std::vector<std::string> resumed = words;
  resumed.emplace_back("--resume");
  const Ended ended = run_lacuna(resumed);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the number of steps was fixed when the run began"));
  EXPECT_EQ(summary(run_dir()).at("steps").as<int64_t>(), steps);
}

TEST_F(RunTimes, SecondsDoNotGoWithAnotherLength) {
  write_text(config(), std::string(kTinyRun) + "  seconds: 5\n");
  const Ended ended = train();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("`seconds` and `epochs` are both given; give one of them"));
  EXPECT_EQ(listing(folder_.path()), "config.yaml");
}

TEST_F(RunTimes, CompareTakesRunsOfEqualLength) {
  ASSERT_EQ(train({"--set", "train.steps=18"}, "long").code, 0);
  ASSERT_EQ(train({"--set", "train.steps=10"}, "short").code, 0);
  const Ended json =
      run_lacuna({"compare", run_dir("long"), run_dir("short"), "--by", "step", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Config report = parse_yaml(json.out, "compare");
  EXPECT_EQ(report.at("compared").text(), "after 10 steps");
  for (const Config& run : report.at("runs").items()) EXPECT_EQ(run.at("step").as<double>(), 10);
  const Ended text = run_lacuna({"compare", run_dir("long"), run_dir("short"), "--by", "seconds"});
  EXPECT_THAT(text.out, HasSubstr("results of evaluations after "));
  EXPECT_THAT(text.out, HasSubstr(" s of training or before\n"));
  EXPECT_EQ(run_lacuna({"compare", run_dir("long"), "--by", "hours"}).code, 2);
}

}  // namespace
}  // namespace lacuna::run_time_test
