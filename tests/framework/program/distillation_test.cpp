// Runs that learn from another run's model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::distillation_test {
namespace {

using testing::HasSubstr;

class DistillationRuns : public RunFixture {
 protected:
  void SetUp() override { ASSERT_EQ(train({}, "teacher").code, 0); }

  std::string loss(const std::string& more = "") const {
    return "loss={type: distillation, teacher: " + run_dir("teacher") + more + "}";
  }
};

TEST_F(DistillationRuns, OfWeightZeroAreRunsWithoutATeacher) {
  ASSERT_EQ(train({"--set", loss(", weight: 0")}, "student").code, 0);
  EXPECT_EQ(summary(run_dir("student")).at("test_loss").text(),
            summary(run_dir("teacher")).at("test_loss").text());
}

// Labels count for nothing here, and the seed is another: all that it learns is the teacher's.
TEST_F(DistillationRuns, ComeCloserToTheTeacher) {
  ASSERT_EQ(train({"--set", loss(", weight: 1, temperature: 4"), "--seed", "5", "--set",
                   "train.epochs=12"},
                  "student")
                .code,
            0);
  std::vector<double> losses;
  for (const Config& event : events(run_dir("student"))) {
    if (event.at("split").text() == "train") losses.push_back(event.required<double>("loss"));
  }
  ASSERT_GT(losses.size(), 4u);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST_F(DistillationRuns, ResumeBitForBit) {
  ASSERT_EQ(train({"--set", loss()}, "whole").code, 0);
  ASSERT_EQ(train({"--set", loss(), "--set", "train.epochs=2"}, "part").code, 0);
  ASSERT_EQ(
      run_lacuna({"train", "--resume", "--run-dir", run_dir("part"), "--set", "train.epochs=3"})
          .code,
      0);
  EXPECT_EQ(timeless_events(run_dir("part")).back(), timeless_events(run_dir("whole")).back());
}

TEST_F(DistillationRuns, SayWhatIsWrong) {
  const auto refused = [&](const std::string& setting, const std::string& message) {
    const Ended ended = train({"--set", setting}, "refused");
    EXPECT_NE(ended.code, 0) << setting;
    EXPECT_THAT(ended.err, HasSubstr(message));
  };
  refused("loss=distillation", "distillation needs a map with its `teacher`");
  refused("loss={type: distillation}", "teacher");
  refused("loss={type: distillation, teacher: nowhere}", "nowhere");
  refused(loss(", temperature: 0"), "loss.temperature: expected a number above 0");
  refused(loss(", weight: 2"), "loss.weight: expected a number in [0, 1]");
}

}  // namespace
}  // namespace lacuna::distillation_test
