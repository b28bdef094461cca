// Folders that stand for the runs in them.
#include "lacuna/framework/report/run_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lacuna/framework/core/error.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::run_search_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FindRuns : public testing::Test {
 protected:
  void add_run(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
    write_text(folder_ / name + "/config.yaml", "{}");
    write_text(folder_ / name + "/metrics.jsonl", "");
  }
  std::vector<std::string> names(const std::vector<std::string>& given) const {
    std::vector<std::string> names;
    for (const std::string& path : find_runs(given).folders) {
      names.push_back(std::filesystem::path(path).lexically_relative(folder_.path()).string());
    }
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(FindRuns, TakesTheRunsBelowAFolder) {
  for (const char* run : {"runs/b", "runs/a", "runs/sweep/lr=1", "runs/.hidden/x"}) add_run(run);
  std::filesystem::create_directories(folder_ / "runs/a/checkpoints/old");
  write_text(folder_ / "runs/report.html", "");
  EXPECT_THAT(names({folder_ / "runs"}), ElementsAre("runs/a", "runs/b", "runs/sweep/lr=1"));
  EXPECT_TRUE(find_runs({folder_ / "runs"}).passed_over.empty());
  // A run that is found twice is one; the order is that of the arguments.
  EXPECT_THAT(names({folder_ / "runs/b/", folder_ / "runs"}),
              ElementsAre("runs/b", "runs/a", "runs/sweep/lr=1"));
}

TEST_F(FindRuns, PassesOverWhatIsNoRunAndSaysSo) {
  add_run("runs/a");
  std::filesystem::create_directories(folder_ / "runs/notes");
  write_text(folder_ / "page.html", "");
  const FoundRuns found = find_runs({folder_ / "page.html", folder_ / "runs"});
  ASSERT_EQ(found.folders.size(), 1u);
  EXPECT_THAT(found.passed_over,
              ElementsAre(HasSubstr("page.html' is a file, not a run folder; it is skipped"),
                          HasSubstr("runs/notes' holds no run, and is skipped")));
  for (int i = 0; i < 20; ++i) {
    std::filesystem::create_directories(folder_ / ("runs/empty" + std::to_string(i)));
  }
  EXPECT_EQ(find_runs({folder_ / "runs"}).passed_over.size(), 9u);
  EXPECT_THAT(find_runs({folder_ / "runs"}).passed_over.back(), HasSubstr("13 more folders in"));
}

// A configuration that somebody keeps next to the folder of its runs is no run.
TEST_F(FindRuns, TellsAConfigurationFromARun) {
  add_run("runs/a");
  write_text(folder_ / "config.yaml", "{}");
  EXPECT_THAT(names({folder_.path()}), ElementsAre("runs/a"));
  std::filesystem::create_directories(folder_ / "begun");
  write_text(folder_ / "begun/config.yaml", "{}");
  EXPECT_THAT(names({folder_ / "begun"}), ElementsAre("begun"));
}

TEST_F(FindRuns, RefusesWhatIsNotThere) {
  add_run("a");
  std::filesystem::create_directories(folder_ / "empty");
  expect_throws<DataError>(
      [&] {
        find_runs({folder_ / "a", folder_ / "none"});
      },
      "there is no run folder '" + (folder_ / "none"));
  expect_throws<DataError>([&] { find_runs({folder_ / "empty"}); }, "has no config.yaml");
  write_text(folder_ / "empty/sweep.yaml", "{}");
  expect_throws<DataError>([&] { find_runs({folder_ / "empty"}); }, "has no run yet");
}

// A link to a folder above is not followed without end.
TEST_F(FindRuns, EndsInALoopOfLinks) {
  add_run("runs/a");
  std::filesystem::create_directory_symlink(folder_ / "runs", folder_ / "runs/again");
  EXPECT_THAT(names({folder_ / "runs"}), ElementsAre("runs/a"));
}

}  // namespace
}  // namespace lacuna::run_search_test
