// When, where and how a run was started.
#include "lacuna/framework/records/start_record.hpp"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace lacuna::start_record_test {
namespace {

TEST(StartRecord, KeepsEveryStart) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_starts(folder.path()).empty());
  append_start(folder.path(), {.time = "2026-11-26T00:46:00Z",
                               .machine = "A processor",
                               .command = "lacuna train x.yaml",
                               .version = "1.2.3",
                               .threads = 2});
  append_start(folder.path(), start_of_process(7));
  const std::vector<RunStart> starts = read_starts(folder.path());
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].machine, "A processor");
  EXPECT_EQ(starts[0].command, "lacuna train x.yaml");
  EXPECT_EQ(starts[0].threads, 2);
  EXPECT_EQ(starts[1].threads, 7);
  EXPECT_EQ(starts[1].time.size(), starts[0].time.size());
  EXPECT_EQ(starts[1].time.back(), 'Z');
  EXPECT_EQ(starts[1].command.substr(0, 13), "records_tests");
}

TEST(StartRecord, TakesTheTimeOfTheLogOfAnEarlierVersion) {
  const TemporaryFolder folder;
  write_text(folder / "log.txt", "2026-11-22 04:42:14.412 info: run folder x\n");
  ASSERT_EQ(read_starts(folder.path()).size(), 1u);
  EXPECT_EQ(read_starts(folder.path())[0].time, "2026-11-22T04:42:14");
  write_text(folder / "log.txt", "no log\n");
  EXPECT_TRUE(read_starts(folder.path()).empty());
}

TEST(StartRecord, LeavesOutLinesThatCannotBeRead) {
  const TemporaryFolder folder;
  write_text(
      folder / "started.jsonl",
      "{\"time\": \"t\"\n[1]\n{\"time\": \"2026-11-26T00:46:00Z\", \"threads\": \"many\"}\n");
  ASSERT_EQ(read_starts(folder.path()).size(), 1u);
  EXPECT_EQ(read_starts(folder.path())[0].threads, 0);
}

TEST(StartRecord, ShortensPaths) {
  EXPECT_EQ(with_short_paths("lacuna train /srv/lacuna/configs/mlp.yaml --out /x"),
            "lacuna train …/configs/mlp.yaml --out /x");
  EXPECT_EQ(with_short_paths("--set data.dir=/srv/a/data/mnist/ --set 'x=[/a/b/c, 1/2]'"),
            "--set data.dir=…/data/mnist/ --set 'x=[…/b/c, 1/2]'");
  EXPECT_EQ(with_short_paths("a/b/c/d /"), "a/b/c/d /");
  EXPECT_EQ(with_short_paths(""), "");
}

}  // namespace
}  // namespace lacuna::start_record_test
