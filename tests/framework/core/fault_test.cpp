#include "lacuna/framework/core/fault.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace lacuna::fault_test {
namespace {

// The variable is read once in a process: each case runs in a child of its own.
void pass(const char* fault, int times) {
  setenv("LACUNA_FAULT", fault, 1);
  for (int i = 0; i < times; ++i) {
    fault_point("other");
    fault_point("save");
  }
  std::_Exit(0);
}

class FaultDeathTest : public testing::Test {
 protected:
  FaultDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FaultDeathTest, KillsAtTheNamedPointAtTheNthTime) {
  EXPECT_EXIT(pass("save:3", 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass("save:3", 3), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(pass("save", 1), testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FaultDeathTest, RaisesTheSignalAskedFor) {
  EXPECT_EXIT(pass("save:2:stop", 2), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(pass("save:2:interrupt", 2), testing::KilledBySignal(SIGINT), "");
}

TEST_F(FaultDeathTest, DoesNothingOtherwise) {
  EXPECT_EXIT(pass("load:1", 5), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass("", 5), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lacuna::fault_test
