// A killed run, and a resume that is to change it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/program/runs.h"

namespace lacuna {

class ResumeChanges : public RunFixture {
 protected:
  // A run that has been killed at step 6, with checkpoints of steps 0 and 4.
  void begin() { ASSERT_EQ(train({}, "run", {.fault = "step.between:6"}).code, -9); }
  void refuses(const std::string& setting, const std::string& message) {
    const std::string before = read_text(run_dir() + "/config.yaml");
    const Ended ended = train({"--resume", "--set", setting});
    EXPECT_EQ(ended.code, 2) << setting;
    EXPECT_THAT(ended.err, testing::HasSubstr(message));
    EXPECT_EQ(read_text(run_dir() + "/config.yaml"), before);
  }
};

}  // namespace lacuna
