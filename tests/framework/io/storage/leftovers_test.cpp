#include "lacuna/framework/io/storage/leftovers.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "temporary_folder.h"

namespace lacuna::leftovers_test {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Of a process that has just ended.
std::string dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return std::to_string(child);
}

std::string own_process() { return std::to_string(::getpid()); }

TEST(Leftovers, AreThoseOfDeadProcessesThatWereToBecomeThePath) {
  const TemporaryFolder folder;
  const std::string dead = dead_process(), own = own_process();
  fs::create_directories(folder / (".model.tmp-" + dead + "/inner"));
  write_text(folder / (".model.tmp-" + dead + "/inner/a"), "x");
  fs::create_directory(folder / (".model.tmp-" + own));
  write_text(folder / (".table.csv.tmp-" + dead), "x");
  write_text(folder / ".model.tmp-12x", "x");
  remove_leftovers(folder / "model");
  EXPECT_THAT(folder.names(), UnorderedElementsAre(".model.tmp-" + own, ".model.tmp-12x",
                                                   ".table.csv.tmp-" + dead));
  remove_leftovers(folder / "table.csv");
  EXPECT_THAT(folder.names(), UnorderedElementsAre(".model.tmp-" + own, ".model.tmp-12x"));
  remove_leftovers(folder / "no/where");
}

TEST(Leftovers, StayWhereSomebodyHoldsALock) {
  const TemporaryFolder folder;
  const std::string name = ".model.tmp-" + dead_process();
  fs::create_directory(folder / name);
  {
    const FolderLock lock(folder / name);
    EXPECT_TRUE(lock.is_taken());
    EXPECT_TRUE(is_locked(folder / name));
    EXPECT_FALSE(FolderLock(folder / name).is_taken());
    remove_leftovers(folder / "model");
    EXPECT_THAT(folder.names(), ElementsAre(name));
  }
  EXPECT_FALSE(is_locked(folder / name));
  remove_leftovers(folder / "model");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Leftovers, AFolderThatWasMovedOutOfTheWayComesBack) {
  const TemporaryFolder folder;
  const std::string old = ".model.tmp-" + dead_process() + "-old";
  fs::create_directory(folder / old);
  write_text(folder / (old + "/a"), "old");
  remove_leftovers(folder / "model");
  EXPECT_THAT(folder.names(), ElementsAre("model"));
  EXPECT_EQ(read_text(folder / "model/a"), "old");
  fs::create_directory(folder / old);  // beside the folder that has taken its place
  remove_leftovers(folder / "model");
  EXPECT_THAT(folder.names(), ElementsAre("model"));
}

TEST(FolderReplacement, ExchangesFoldersAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  fs::create_directory(folder / (".model.tmp-" + dead_process()));
  for (const char* text : {"first", "second"}) {
    FolderReplacement replacement(path);
    write_text(replacement.temporary_path() + "/a", text);
    replacement.commit();
    EXPECT_EQ(read_text(path + "/a"), text);
    EXPECT_THAT(folder.names(), ElementsAre("model"));
  }
}

TEST(RemoveTemporaryFiles, LeavesTheFolderOfALivingExport) {
  const TemporaryFolder folder;
  const std::string own = ".model.tmp-" + own_process();
  fs::create_directory(folder / own);
  fs::create_directory(folder / (".model.tmp-" + dead_process()));
  EXPECT_EQ(remove_temporary_files(folder.path()), 0);
  EXPECT_THAT(folder.names(), ElementsAre(own));
}

}  // namespace
}  // namespace lacuna::leftovers_test
