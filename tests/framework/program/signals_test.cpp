// What ends a run from outside, and what does not: signals, and readers of its messages that go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::signals_test {
namespace {

using testing::HasSubstr;

class Signals : public RunFixture {
 protected:
  // A run that takes long, to which these are sent once it is in its loop.
  Ended signalled(const std::vector<int>& signals, const std::string& name,
                  std::function<void()> in_child = {}) {
    const std::string metrics = run_dir(name) + "/metrics.jsonl";
    const auto pause = [](int milliseconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
    return train({"--set", "train.epochs=100000", "--set", "train.eval_every=1 step"}, name,
                 {.in_child = std::move(in_child), .meanwhile = [&](pid_t child) {
                    std::error_code missing;
                    while (std::filesystem::file_size(metrics, missing) < 2000 || missing) pause(5);
                    for (const int signal : signals) {
                      ::kill(child, signal);
                      pause(50);
                    }
                  }});
  }
};

TEST_F(Signals, SaveAndEndWithTheirCode) {
  // A terminal that goes away sends more than one.
  const std::vector<std::pair<std::vector<int>, int>> cases = {
      {{SIGHUP, SIGHUP, SIGHUP}, 129}, {{SIGINT}, 130}, {{SIGTERM}, 143}};
  for (const auto& [signals, code] : cases) {
    const std::string name = "run" + std::to_string(code);
    // The tests themselves may run where a hang-up is ignored.
    const Ended ended = signalled(signals, name, [] { std::signal(SIGHUP, SIG_DFL); });
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("continue with `lacuna train --resume --run-dir " +
                                     run_dir(name) + "`\n"));
    EXPECT_THAT(read_text(run_dir(name) + "/log.txt"), HasSubstr("stopped at step "));
    EXPECT_EQ(train({"--resume", "--set", "train.steps=100000000", "--set", "train.epochs=100000"},
                    name, {.fault = "step.between:1"})
                  .code,
              -9);
  }
}

TEST_F(Signals, HangUpEndsNothingWhereItWasIgnored) {
  const Ended ended = signalled({SIGHUP, SIGTERM}, "run", [] { std::signal(SIGHUP, SIG_IGN); });
  EXPECT_EQ(ended.code, 143) << ended.err;
}

// As in `lacuna train … | head -1`, and where a terminal is gone.
TEST_F(Signals, ClosedOutputsEndNoRun) {
  const auto broken_pipe = [](int descriptor) {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(126);
    ::dup2(ends[1], descriptor);
    ::close(ends[0]);
    ::close(ends[1]);
  };
  const std::vector<std::function<void()>> ways = {[] { ::close(STDOUT_FILENO); },
                                                   [] { ::close(STDERR_FILENO); },
                                                   [] {
                                                     ::close(STDIN_FILENO);
                                                     ::close(STDOUT_FILENO);
                                                     ::close(STDERR_FILENO);
                                                   },
                                                   [&] { broken_pipe(STDOUT_FILENO); },
                                                   [&] { broken_pipe(STDERR_FILENO); },
                                                   [&] {
                                                     broken_pipe(STDERR_FILENO);
                                                     std::signal(SIGPIPE, SIG_DFL);
                                                   }};
  for (size_t i = 0; i < ways.size(); ++i) {
    const std::string name = "run" + std::to_string(i);
    EXPECT_EQ(train({}, name, {.in_child = ways[i]}).code, 0) << i;
    EXPECT_EQ(summary(run_dir(name)).required<int>("steps"), 18);
    const std::string log = read_text(run_dir(name) + "/log.txt");
    EXPECT_THAT(log, HasSubstr("run       "));
    EXPECT_THAT(log, HasSubstr("test loss"));
    for (const Config& event : events(run_dir(name))) EXPECT_TRUE(event.has("step"));
  }
}

}  // namespace
}  // namespace lacuna::signals_test
