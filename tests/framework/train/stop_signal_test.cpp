#include "lacuna/framework/train/stop_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace lacuna {
namespace {

TEST(StopSignal, NotesTheFirstSignalAndPutsTheHandlersBack) {
  EXPECT_EQ(std::signal(SIGTERM, SIG_IGN), SIG_DFL);
  {
    const StopSignal stop;
    EXPECT_EQ(StopSignal::received(), 0);
    std::raise(SIGTERM);
    EXPECT_EQ(StopSignal::received(), SIGTERM);
  }
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_IGN);
  {
    const StopSignal stop;
    EXPECT_EQ(StopSignal::received(), 0);
    std::raise(SIGINT);
    EXPECT_EQ(StopSignal::received(), SIGINT);
  }
}

TEST(StopSignal, LetsASecondSignalEndTheProcess) {
  const StopSignal stop;
  EXPECT_EXIT(
      {
        std::raise(SIGINT);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace lacuna
