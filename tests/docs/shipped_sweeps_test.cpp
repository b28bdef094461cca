// Each command line in the head of a sweep that comes with the project runs, for a few steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "docs/documents.h"
#include "framework/program/process.h"

namespace lacuna::shipped_sweeps_test {
namespace {

namespace fs = std::filesystem;

class ShippedSweep : public testing::TestWithParam<std::string> {};

std::string path_of(const std::string& name) { return "configs/sweeps/" + name + ".yaml"; }

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// Lines of comments that are commands, with those that end in a backslash joined.
std::vector<std::string> commands_of(const std::string& name) {
  std::vector<std::string> commands;
  bool goes_on = false;
  for (std::string line : documents::read_lines(path_of(name))) {
    if (!line.starts_with("#   ")) continue;
    line = line.substr(4);
    if (!goes_on) commands.emplace_back();
    goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    commands.back() += line;
  }
  return commands;
}

// As it stands, but for a few steps on few examples, and one seed.
std::string made_small(std::string command, const std::string& name) {
  replace(command, "lacuna ", std::string(kProgram) + " ");
  replace(command, path_of(name), documents::source_path(path_of(name)));
  replace(command, "--seeds 3", "--seeds 1");
  replace(command, "--set train.epochs=10", "");
  return command +
         " --set train.steps=12 --set data.train_size=80 --set data.test_size=20 --threads 1";
}

TEST_P(ShippedSweep, Runs) {
  const std::vector<std::string> commands = commands_of(GetParam());
  ASSERT_FALSE(commands.empty());
  const TemporaryFolder folder;
  size_t runs = 0;
  for (const std::string& command : commands) {
    const Ended ended = run_lacuna({"-c", made_small(command, GetParam())},
                                   {.program = "/bin/sh", .folder = folder.path()});
    EXPECT_EQ(ended.code, 0) << command << "\n" << ended.err;
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    runs += entry.path().filename() == "summary.json" ? 1 : 0;
  }
  EXPECT_GE(runs, 4u);
}

// The guide leads to it.
TEST_P(ShippedSweep, IsInTheGuide) {
  const std::vector<std::string> lines = documents::read_lines("docs/guides/choosing.md");
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find(path_of(GetParam())) != std::string::npos;
  }));
}

std::vector<std::string> shipped_sweeps() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(documents::source_path("configs/sweeps"))) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Sweeps, ShippedSweep, testing::ValuesIn(shipped_sweeps()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lacuna::shipped_sweeps_test
