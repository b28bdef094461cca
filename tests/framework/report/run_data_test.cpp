#include "lacuna/framework/report/run_data.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/report/run_table.hpp"
#include "temporary_folder.h"

namespace lacuna::run_data_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kEvents =
    R"({"step": 8, "split": "test", "loss": 2.0, "accuracy": 0.5}
{"step": 16, "split": "test", "loss": 1.0, "accuracy": 0.75}
{"step": 24, "split": "test", "loss": 1.5, "accuracy": 0.625}
)";
constexpr const char* kSummary =
    R"({"steps": 24, "best_step": 16, "test_loss": 1.5, "test_accuracy": 0.625,
        "best_test_loss": 1.0, "best_test_accuracy": 0.75})";

class RunDataOfAFolder : public testing::Test {
 protected:
  RunDataOfAFolder() { folder_.write("config.yaml", "train: {epochs: 1}\n"); }
  RunData read(const std::string& events, const std::string& summary = kSummary) const {
    folder_.write("metrics.jsonl", events);
    folder_.write("summary.json", summary);
    return read_run(folder_.path(), 0);
  }
  const TemporaryFolder folder_;
};

TEST_F(RunDataOfAFolder, IsWhatTheEventsTell) {
  const RunData run = read(kEvents);
  EXPECT_THAT(run.splits.at("test").at("loss").steps, ElementsAre(8, 16, 24));
  EXPECT_THAT(run.remarks, IsEmpty());
}

TEST_F(RunDataOfAFolder, TakesFromTheSummaryWhatEventsHaveLost) {
  const std::string events(kEvents);
  const size_t first = events.find('\n') + 1, second = events.find('\n', first) + 1;
  for (const std::string& left :
       {events.substr(0, first), events.substr(0, second), events.substr(second), std::string()}) {
    const RunData run = read(left);
    EXPECT_THAT(run.remarks, ElementsAre("metrics.jsonl lacks the last or the best evaluation, "
                                         "which summary.json has"))
        << left;
    const RunResult result = result_of(run);
    EXPECT_EQ(result.loss, 1.5) << left;
    EXPECT_EQ(result.accuracy, 0.625) << left;
    EXPECT_EQ(result.best_step, 16.0) << left;
    EXPECT_EQ(result.best_loss, 1.0) << left;
    EXPECT_EQ(result.best_accuracy, 0.75) << left;
  }
}

TEST_F(RunDataOfAFolder, HasTheTrainingLossOfARunWithoutEvents) {
  const RunResult result = result_of(read("", R"({"steps": 12, "train_loss": 1.75})"));
  EXPECT_EQ(result.split, "train");
  EXPECT_EQ(result.step, 12.0);
  EXPECT_EQ(result.loss, 1.75);
}

// They have times of evaluations alone.
TEST_F(RunDataOfAFolder, HasTimesOfRunsThatAreShorterThanTheIntervalOfTheirLog) {
  const std::string evaluations = R"({"step": 8, "split": "test", "loss": 2.0, "seconds": 1.0}
{"step": 24, "split": "test", "loss": 1.5, "seconds": 6.0}
)";
  const RunData run = read(evaluations);
  EXPECT_THAT(run.step_seconds.steps, ElementsAre(24.0));
  EXPECT_THAT(run.step_seconds.values, ElementsAre(0.25));
  const RunData logged =
      read(evaluations + R"({"step": 10, "split": "train", "loss": 2.0, "seconds": 2.0})" + "\n");
  EXPECT_THAT(logged.step_seconds.values, ElementsAre(0.2));
  EXPECT_THAT(read(kEvents).step_seconds.steps, IsEmpty());
}

TEST_F(RunDataOfAFolder, LeavesOutEventsAtStepsThatThereAreNot) {
  const RunData run = read(std::string(kEvents) +
                           R"({"step": 1e300, "split": "test", "loss": 1}
{"step": -8, "split": "test", "loss": 1}
{"step": 24.5, "split": "update", "parameter": "w", "nnz": 1}
)");
  EXPECT_EQ(run.damaged_lines, 3);
  EXPECT_THAT(run.remarks, ElementsAre(HasSubstr("3 lines of metrics.jsonl could not be read")));
  EXPECT_EQ(result_of(run).step, 24.0);
  EXPECT_EQ(read(kEvents, R"({"steps": 1e300, "best_step": -5, "test_loss": 1})").remarks.size(),
            0);
}

}  // namespace
}  // namespace lacuna::run_data_test
