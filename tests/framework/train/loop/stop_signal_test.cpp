#include "lacuna/framework/train/loop/stop_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace lacuna::stop_signal_test {
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

// What runs may use the stack pointer for something else.
TEST(StopSignal, IsNotedOnAStackOfItsOwn) {
  const auto now = [] {
    stack_t stack = {};
    ::sigaltstack(nullptr, &stack);
    return stack;
  };
  const stack_t before = now();
  {
    const StopSignal stop;
    EXPECT_EQ(now().ss_flags & SS_DISABLE, 0);
    EXPECT_GE(now().ss_size, 64u * 1024u);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action = {};
      ::sigaction(signal, nullptr, &action);
      EXPECT_NE(action.sa_flags & SA_ONSTACK, 0) << signal;
    }
  }
  EXPECT_EQ(now().ss_flags, before.ss_flags);
  EXPECT_EQ(now().ss_sp, before.ss_sp);
}

TEST(StopSignal, LeavesAHangUpIgnoredWhereOneHasCome) {
  EXPECT_EXIT(
      {
        { const StopSignal stop; }
        if (std::signal(SIGHUP, SIG_DFL) != SIG_DFL) std::exit(1);
        {
          const StopSignal stop;
          std::raise(SIGHUP);
        }
        std::raise(SIGHUP);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lacuna::stop_signal_test
