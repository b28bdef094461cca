// Commands that make a run of another run, killed while they write it, or without room on the disk:
// the new run is whole or is not there, and the old one stays what it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::killed_commands_test {
namespace {

using testing::HasSubstr;

constexpr int kKill = -9;

struct Command {
  std::string name;
  std::vector<std::string> options;
};

class KilledCommands : public RunFixture, public testing::WithParamInterface<Command> {
 protected:
  Ended make(const std::string& to, const ProcessOptions& options = {}) const {
    std::vector<std::string> arguments{GetParam().name, run_dir()};
    arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
    arguments.insert(arguments.end(), {"--run-dir", run_dir(to)});
    return run_lacuna(arguments, options);
  }
  StateDict state(const std::string& name) const {
    return find_checkpoint(run_dir(name)).read().state;
  }
  /// All files of a folder, with their contents.
  static std::map<std::string, std::string> files(const std::string& folder) {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) found[entry.path().string()] = read_text(entry.path().string());
    }
    return found;
  }
};

TEST_P(KilledCommands, LeaveAWholeRunOrNone) {
  ASSERT_EQ(train().code, 0);
  const auto before = files(run_dir());
  ASSERT_EQ(make("whole").code, 0);
  for (const char* point : {"run.after_folder", "run.after_config", "checkpoint.before_write",
                            "checkpoint.half_written", "checkpoint.before_rename",
                            "checkpoint.after_rename", "checkpoint.after_prune"}) {
    SCOPED_TRACE(point);
    ASSERT_EQ(make("made", {.fault = point}).code, kKill);
    EXPECT_FALSE(std::filesystem::exists(run_dir("made")));
    EXPECT_EQ(files(run_dir()), before);
  }
  const Ended ended = make("made");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(differences(state("whole"), state("made")), std::vector<std::string>{});
  for (const auto& entry : std::filesystem::directory_iterator(std::string(folder_ / "."))) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr(".tmp-")))
        << "of a killed process";
  }
}

TEST_P(KilledCommands, RemoveWhatDoesNotFitOnTheDisk) {
  ASSERT_EQ(train().code, 0);
  const auto before = files(run_dir());
  for (const int64_t most : {2'000, 20'000}) {  // bytes: config.yaml and checkpoint are cut off
    const Ended ended = make("made", {.max_file_bytes = most});
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("made"));
    EXPECT_FALSE(std::filesystem::exists(run_dir("made")));
    EXPECT_EQ(files(run_dir()), before);
  }
  EXPECT_EQ(make("made").code, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, KilledCommands,
    testing::Values(
        Command{"quantize", {"--set", "quantize={param_filter: '*.weight', calibration: 40}"}},
        Command{"prune", {"--set", "sparsity={algorithm: wanda, sparsity: 0.5, calibration: 40}"}},
        Command{"shrink", {"--to", "flops=0.5"}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace lacuna::killed_commands_test
