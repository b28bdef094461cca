// A run whose checkpoint another revision of the arithmetic has made goes on, and says so once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

#include "framework/program/runs.h"
#include "lacuna/framework/core/arithmetic_revision.h"

namespace lacuna::arithmetic_revision_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSteps = 18;

struct Saved {
  std::string name;
  std::optional<int64_t> revision;
  std::string notice;  ///< how the line begins; empty: there is none
};

class ArithmeticRevision : public RunFixture, public testing::WithParamInterface<Saved> {
 protected:
  static int lines_with(const std::string& text, const std::string& words) {
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
      count += line.find(words) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  // A run that was stopped at step 7, with another revision in its checkpoint.
  void make_stopped_run(const std::optional<int64_t>& revision) const {
    ASSERT_EQ(train({}, "run", {.fault = "step.between:7:interrupt"}).code, 130);
    Checkpoint saved = read_checkpoint(checkpoint(7));
    EXPECT_EQ(saved.arithmetic_revision, kArithmeticRevision);
    saved.arithmetic_revision = revision;
    write_checkpoint(checkpoint(7), saved);
  }
};

TEST_P(ArithmeticRevision, OfACheckpointIsComparedOnResuming) {
  ASSERT_NO_FATAL_FAILURE(make_stopped_run(GetParam().revision));
  const Ended ended = train({"--resume"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const int expected = GetParam().notice.empty() ? 0 : 1;
  EXPECT_EQ(lines_with(ended.err, "arithmetic revision"), expected) << ended.err;
  EXPECT_EQ(lines_with(read_text(run_dir() + "/log.txt"), "arithmetic revision"), expected);
  EXPECT_THAT(ended.err, HasSubstr(GetParam().notice));
  // What the run has made since is of this revision.
  EXPECT_EQ(read_checkpoint(checkpoint(kSteps)).arithmetic_revision, kArithmeticRevision);
  EXPECT_EQ(summary(run_dir()).required<int64_t>("arithmetic_revision"), kArithmeticRevision);
  ASSERT_EQ(train({}, "whole").code, 0);
  EXPECT_THAT(differences(read_checkpoint(checkpoint(kSteps)).state,
                          read_checkpoint(checkpoint(kSteps, "whole")).state),
              IsEmpty());
}

TEST_P(ArithmeticRevision, OfACheckpointIsPrintedByInspect) {
  ASSERT_NO_FATAL_FAILURE(make_stopped_run(GetParam().revision));
  const Ended ended = run_lacuna({"inspect", checkpoint(7), "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Config report = parse_yaml(ended.out, "out");
  ASSERT_EQ(report.has("arithmetic_revision"), GetParam().revision.has_value());
  if (!GetParam().revision) return;
  EXPECT_EQ(report.required<int64_t>("arithmetic_revision"), *GetParam().revision);
}

INSTANTIATE_TEST_SUITE_P(
    All, ArithmeticRevision,
    testing::Values(Saved{"none", std::nullopt, "the checkpoint has no arithmetic revision, but "},
                    Saved{"older", kArithmeticRevision - 1, "the checkpoint has arithmetic "},
                    Saved{"equal", kArithmeticRevision, ""},
                    Saved{"newer", kArithmeticRevision + 1, "the checkpoint has arithmetic "}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lacuna::arithmetic_revision_test
