#include "lacuna/framework/train/runs/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::run_folder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunFolders : public testing::Test {
 protected:
  std::string path() const { return folder_ / "a/run"; }
  static Checkpoint of_step(int64_t step) {
    Checkpoint checkpoint;
    checkpoint.step = step;
    checkpoint.state.set("trainer/step", step);
    return checkpoint;
  }
  const TemporaryFolder folder_;
};

TEST_F(RunFolders, IsMadeWithItsConfigurationAndNeverTwice) {
  const RunFolder run = RunFolder::create(path(), "a: 1\n");
  EXPECT_EQ(read_text(run.config_path()), "a: 1\n");
  EXPECT_EQ(listing(path()), "checkpoints config.yaml");
  expect_throws<StateError>(
      [&] { RunFolder::create(path(), "b: 2\n"); },
      "holds a run already; continue it with `lacuna train --resume --run-dir " + path());
  EXPECT_EQ(read_text(run.config_path()), "a: 1\n");
}

TEST_F(RunFolders, MayBeAnEmptyFolderOrOneOfAProcessKilledEarly) {
  std::filesystem::create_directories(path());
  write_text(path() + "/.config.yaml.tmp-17", "hal");
  RunFolder::create(path(), "a: 1\n");
  EXPECT_EQ(listing(path()), "checkpoints config.yaml");
}

TEST_F(RunFolders, IsNamedInCommandsAsAWordOfAShell) {
  const std::string spaced = folder_ / "two words";
  RunFolder::create(spaced, "a: 1\n");
  expect_throws<StateError>([&] { RunFolder::create(spaced, "a: 1\n"); },
                            "`lacuna train --resume --run-dir '" + spaced + "'`");
}

TEST_F(RunFolders, IsNoLinkToNowhere) {
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  std::filesystem::create_directory_symlink("nowhere", path());
  expect_throws<StateError>([&] { RunFolder::create(path(), "a: 1\n"); },
                            "the run folder '" + path() +
                                "' is a link to 'nowhere', which does not exist; make that folder");
  const auto folder = std::filesystem::path(path()).parent_path() / "nowhere";
  std::filesystem::create_directory(folder);
  RunFolder::create(path(), "a: 1\n");
  EXPECT_EQ(listing(folder.string()), "checkpoints config.yaml");
}

TEST_F(RunFolders, IsForOneTrainingProcessAtATime) {
  {
    const RunFolder run = RunFolder::create(path(), "a: 1\n");
    expect_throws<StateError>([&] { RunFolder::open(path()); },
                              "another process is training in the run folder '" + path() + "'");
  }
  RunFolder::open(path());
}

TEST_F(RunFolders, IsSweptWhenItIsOpened) {
  RunFolder::create(path(), "a: 1\n");
  write_text(path() + "/.summary.json.tmp-17", "hal");
  write_text(path() + "/checkpoints/.step-0000000001.h5.tmp-17", "hal");
  RunFolder::open(path());
  EXPECT_EQ(listing(path()), "checkpoints config.yaml");
  EXPECT_EQ(listing(path() + "/checkpoints"), "");
}

TEST_F(RunFolders, PrunesToTheNewest) {
  const RunFolder run = RunFolder::create(path(), "a: 1\n");
  for (const int64_t step : {0, 9, 10, 11}) run.save_checkpoint(of_step(step), 2);
  write_text(path() + "/checkpoints/step-7.h5", "of someone else");
  write_text(path() + "/checkpoints/best.h5", "best");
  EXPECT_THAT(run.checkpoint_steps(), ElementsAre(11, 10));
  run.prune_checkpoints(1);
  EXPECT_EQ(listing(path() + "/checkpoints"), "best.h5 step-0000000011.h5 step-7.h5");
}

TEST_F(RunFolders, FindsTheNewestGoodCheckpointAndSetsNewerOnesAside) {
  const RunFolder run = RunFolder::create(path(), "a: 1\n");
  EXPECT_FALSE(run.newest_good_checkpoint().has_value());
  expect_throws<CheckpointError>([&] { find_checkpoint(path()); }, "holds no checkpoints");
  for (const int64_t step : {1, 2, 3}) run.save_checkpoint(of_step(step), 5);
  EXPECT_EQ(find_checkpoint(path()).path(), run.checkpoint_path(3));
  EXPECT_EQ(find_checkpoint(run.checkpoint_path(2)).read().step, 2);
  expect_throws<CheckpointError>([&] { find_checkpoint(folder_ / "file.h5"); }, "file.h5");
  write_text(run.checkpoint_path(3), "damaged");
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Warning);
  const auto good = run.newest_good_checkpoint();
  stop_logging();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("going back to an older one"));
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->path(), run.checkpoint_path(2));
  run.set_aside_newer_than(good->path());
  EXPECT_EQ(listing(path() + "/checkpoints"),
            "step-0000000001.h5 step-0000000002.h5 step-0000000003.h5.damaged");
  write_text(run.checkpoint_path(2), "damaged");
  write_text(run.checkpoint_path(1), "damaged");
  expect_throws<CheckpointError>([&] { run.newest_good_checkpoint(); },
                                 "none of the checkpoints in '" + path() + "' can be used: ");
}

TEST_F(RunFolders, SaysWhyAFolderCannotBeMade) {
  write_text(folder_ / "file", "x");
  expect_throws<StateError>([&] { RunFolder::create(folder_ / "file/run", "a: 1\n"); },
                            "cannot make the run folder '" + (folder_ / "file/run") + "': ");
}

}  // namespace
}  // namespace lacuna::run_folder_test
