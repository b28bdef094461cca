// train.seconds and --profile in a job of several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "framework/distributed/job.h"

namespace lacuna::seconds_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class SecondsOfAJob : public RunFixture {};

TEST_F(SecondsOfAJob, AreOneNumberOfSteps) {
  const Ended ended = run_job(2, {"train", config(), "--run-dir", run_dir(), "--set",
                                  "train.seconds=1", "--set", "train.shards=2", "--profile"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("length    "));
  const auto steps = load_yaml(run_dir() + "/config.yaml").at("train").at("steps").as<int64_t>();
  EXPECT_EQ(summary(run_dir()).at("steps").as<int64_t>(), steps);
  EXPECT_EQ(load_yaml(run_dir() + "/profile.json").at("steps").as<int64_t>(), steps);
  // One process alone, given that number, trains the same.
  const Ended alone =
      run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("alone")});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(differences(find_checkpoint(run_dir()).read().state,
                          find_checkpoint(run_dir("alone")).read().state),
              IsEmpty());
}

}  // namespace
}  // namespace lacuna::seconds_test
