// Runs of an earlier version are read and go on: with the same topology at each step, and losses
// that differ by rounding alone, on every machine. Bits are compared only between runs of the
// program under test. What they are and how they were made is in earlier_runs/README.md. Names
// that later versions added are passed over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/program/runs.h"
#include "paths.h"

namespace lacuna::earlier_runs_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Kernels, of other versions and instruction sets, sum in another order; these runs' losses then
// differ by 2e-7 at most.
constexpr double kLossTolerance = 1e-5;

const std::string kRuns = std::string(kSourceFolder) + "/tests/framework/program/earlier_runs";

// Those that were there then.
StateDict with_names_of(const StateDict& state, const StateDict& earlier) {
  StateDict kept;
  for (const auto& [name, value] : state.values()) {
    if (earlier.contains(name)) kept.set(name, value);
  }
  return kept;
}

std::string timeless(const Config& event, const Config& earlier) {
  Config kept = Config::map();
  for (const auto& [key, value] : event.entries()) {
    const bool is_time = key == "seconds" || key == "examples_per_second";
    if (earlier.has(key) && !is_time) kept.set(key, value);
  }
  return kept.to_json();
}

struct EarlierRun {
  std::string name;
  std::string last_checkpoint;
  bool has_revision = false;  // of the arithmetic
};

class RunOfAnEarlierVersion : public RunFixture, public testing::WithParamInterface<EarlierRun> {
 protected:
  std::string folder() const { return kRuns + "/" + GetParam().name; }

  std::string copy_of_run() const {
    std::filesystem::copy(folder() + "/run", run_dir(), std::filesystem::copy_options::recursive);
    return run_dir();
  }

  // The run has come where the one in `expected` has.
  void expect_same(const std::string& expected, const std::string& file) const {
    const Checkpoint there = read_checkpoint(run_dir() + "/checkpoints/" + file);
    const Checkpoint wanted = read_checkpoint(expected + "/checkpoints/" + file);
    EXPECT_EQ(there.step, wanted.step);
    expect_same_integers(with_names_of(there.state, wanted.state), wanted.state);
    expect_same_events(expected);
  }

 private:
  // Masks, indices, layouts, counters: whatever is no number that is rounded.
  static void expect_same_integers(const StateDict& found, const StateDict& expected) {
    ASSERT_EQ(found.values().size(), expected.values().size());
    int masks = 0;
    for (const auto& [name, value] : expected.values()) {
      ASSERT_TRUE(found.contains(name)) << name;
      const bool is_rounded =
          std::holds_alternative<Tensor>(value) || std::holds_alternative<double>(value);
      if (is_rounded) continue;
      EXPECT_TRUE(is_identical(found.values().at(name), value)) << name;
      masks += name.ends_with("_mask") || name.ends_with("/indices") ? 1 : 0;
    }
    EXPECT_GE(masks, 2);
  }

  void expect_same_events(const std::string& expected_dir) const {
    const std::vector<Config> found = events(run_dir()), expected = events(expected_dir);
    ASSERT_EQ(found.size(), expected.size());
    int losses = 0, updates = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool is_update = expected[i].at("split").text() == "update";
      (is_update ? updates : losses) += 1;
      if (is_update) {
        EXPECT_EQ(timeless(found[i], expected[i]), timeless(expected[i], expected[i]));
      } else {
        EXPECT_EQ(found[i].at("split").text(), expected[i].at("split").text());
        EXPECT_EQ(found[i].at("step").text(), expected[i].at("step").text());
        EXPECT_NEAR(found[i].required<double>("loss"), expected[i].required<double>("loss"),
                    kLossTolerance)
            << expected[i].to_json();
      }
    }
    EXPECT_GT(losses, 5);
    EXPECT_GT(updates, 5);
  }
};

TEST_P(RunOfAnEarlierVersion, IsResumedToTheSameEnd) {
  copy_of_run();
  const Ended ended = run_lacuna({"train", "--resume", "--run-dir", run_dir()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  if (!GetParam().has_revision) {
    EXPECT_THAT(ended.err, HasSubstr("the checkpoint has no arithmetic revision"));
  }
  expect_same(folder() + "/end", GetParam().last_checkpoint);
}

// The resolved configuration means what it meant: drawn anew, the weights are those of then.
TEST_P(RunOfAnEarlierVersion, IsMadeAgainByItsConfiguration) {
  const Ended ended = run_lacuna({"train", folder() + "/run/config.yaml", "--run-dir", run_dir()},
                                 {.fault = "step.between:17:interrupt"});
  ASSERT_EQ(ended.code, 130) << ended.err;
  expect_same(folder() + "/run", "step-0000000017.h5");
}

// Two runs of this program: one without a stop, one that is stopped and resumed.
TEST_P(RunOfAnEarlierVersion, IsMadeBitForBitByAStoppedRun) {
  const std::string config = folder() + "/run/config.yaml";
  ASSERT_EQ(run_lacuna({"train", config, "--run-dir", run_dir("whole")}).code, 0);
  ASSERT_EQ(run_lacuna({"train", config, "--run-dir", run_dir("stopped")},
                       {.fault = "step.between:17:interrupt"})
                .code,
            130);
  ASSERT_EQ(run_lacuna({"train", "--resume", "--run-dir", run_dir("stopped")}).code, 0);
  const std::string file = "/checkpoints/" + GetParam().last_checkpoint;
  EXPECT_THAT(differences(read_checkpoint(run_dir("stopped") + file).state,
                          read_checkpoint(run_dir("whole") + file).state),
              IsEmpty());
}

TEST_P(RunOfAnEarlierVersion, IsEvaluatedAsItWas) {
  const Ended ended = run_lacuna({"eval", copy_of_run(), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config found = parse_yaml(ended.out, "out"), expected = load_yaml(folder() + "/eval.json");
  EXPECT_EQ(found.at("step").text(), expected.at("step").text());
  const std::vector<Config> splits = found.at("splits").items(),
                            before = expected.at("splits").items();
  ASSERT_EQ(splits.size(), before.size());
  for (size_t i = 0; i < splits.size(); ++i) {
    EXPECT_EQ(splits[i].at("split").text(), before[i].at("split").text());
    EXPECT_NEAR(splits[i].required<double>("loss"), before[i].required<double>("loss"),
                kLossTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunOfAnEarlierVersion,
                         testing::Values(EarlierRun{"group", "step-0000000036.h5"},
                                         EarlierRun{"phases", "step-0000000040.h5"},
                                         EarlierRun{"sparsifiers", "step-0000000036.h5", true}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lacuna::earlier_runs_test
