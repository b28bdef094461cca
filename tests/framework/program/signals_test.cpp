// What ends a run from outside, and what does not: signals, and readers of its messages that go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "framework/program/runs.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

class Signals : public RunFixture {
 protected:
  // A run that takes long, once it is in its loop.
  Ended signalled(int signal, const std::string& name, std::function<void()> in_child = {}) {
    const std::string metrics = run_dir(name) + "/metrics.jsonl";
    return train({"--set", "train.epochs=100000", "--set", "train.eval_every=1 step"}, name,
                 {.in_child = std::move(in_child), .meanwhile = [&](pid_t child) {
                    std::error_code missing;
                    while (std::filesystem::file_size(metrics, missing) < 2000 || missing) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(5));
                    }
                    ::kill(child, signal);
                    if (signal != SIGHUP) return;
                    ::kill(child, SIGHUP);  // a terminal that goes sends more than one
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                    ::kill(child, SIGTERM);  // ends it at once where it still goes on
                  }});
  }
};

TEST_F(Signals, SaveAndEndWithTheirCode) {
  for (const auto& [signal, code] : {std::pair{SIGHUP, 129}, {SIGINT, 130}, {SIGTERM, 143}}) {
    const std::string name = "run" + std::to_string(code);
    const Ended ended = signalled(signal, name);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("continue with --resume --run-dir " + run_dir(name)));
    EXPECT_THAT(read_text(run_dir(name) + "/log.txt"), HasSubstr("stopped at step "));
    EXPECT_EQ(train({"--resume", "--set", "train.steps=100000000", "--set", "train.epochs=100000"},
                    name, {.fault = "step.between:1"})
                  .code,
              -9);
  }
}

TEST_F(Signals, HangUpEndsNothingWhereItWasIgnored) {
  const Ended ended = signalled(SIGHUP, "run", [] { std::signal(SIGHUP, SIG_IGN); });
  EXPECT_EQ(ended.code, 143) << ended.err;  // by the SIGTERM that came later
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
}  // namespace lacuna
