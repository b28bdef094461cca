// Who may include whom: the table of docs/development/architecture.md, held against the #include
// lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "structure/rooms.h"
#include "structure/sources.h"

namespace lacuna::structure {
namespace {

TEST(Rooms, TableHoldsEveryFolderAndPointsDownwards) {
  const std::vector<Room> table = read_rooms();
  const auto rooms = rooms_by_path();
  ASSERT_GE(rooms.size(), 12u);
  ASSERT_EQ(rooms.size(), table.size()) << "a room stands in the table twice";
  for (const SourceFile& file : library_sources()) {
    EXPECT_NE(room_of(file.path, rooms), "")
        << file.path << " is in no room of the table in docs/development/architecture.md";
  }
  std::set<std::string> above;
  for (const Room& room : table) {
    for (const std::string& other : room.may_include) {
      EXPECT_TRUE(above.contains(other))
          << room.path << " may include " << other << ", which is not above it in the table";
    }
    above.insert(room.path);
  }
}

TEST(Rooms, IncludeOnlyWhatTheTableAllows) {
  const auto rooms = rooms_by_path();
  for (const SourceFile& file : library_sources()) {
    const std::string room = room_of(file.path, rooms);
    for (const Include& include : includes(file)) {
      if (!include.is_ours) continue;
      const std::string other = room_of(include.path, rooms);
      EXPECT_TRUE(other == room || rooms.at(room).may_include.contains(other))
          << at(file, include.line) << room << " may not include " << include.path
          << "; docs/development/architecture.md holds the table";
    }
  }
}

// scripts/room_includes.py writes the column anew.
TEST(Rooms, TableAllowsOnlyWhatIsIncluded) {
  const auto rooms = rooms_by_path();
  std::map<std::string, std::set<std::string>> used;
  for (const SourceFile& file : library_sources()) {
    for (const Include& include : includes(file)) {
      if (include.is_ours) used[room_of(file.path, rooms)].insert(room_of(include.path, rooms));
    }
  }
  for (const auto& [path, room] : rooms) {
    for (const std::string& other : room.may_include) {
      EXPECT_TRUE(used[path].contains(other))
          << path << " may include " << other
          << " by docs/development/architecture.md, and does not";
    }
  }
}

TEST(Rooms, NothingIncludesTheRoofOrAnUmbrella) {
  for (const SourceFile& file : library_sources()) {
    if (file.path.starts_with("framework/program/")) continue;
    for (const Include& include : includes(file)) {
      EXPECT_FALSE(include.is_ours && (include.path.starts_with("framework/program/") ||
                                       include.path == "lacuna.h" || include.path == "extend.h"))
          << at(file, include.line) << include.path;
    }
  }
}

// A folder that holds more is two subjects.
TEST(Rooms, AreSmallEnoughToKnow) {
  constexpr int kMostFiles = 46;
  std::map<std::string, int> files;
  for (const SourceFile& file :
       read_sources({"framework", "layers", "optimizers", "sparsity", "tests"})) {
    for (const char* end : {".h", ".hpp", ".inc", ".cpp"})
      files[file.folder()] += file.ends_with(end);
  }
  ASSERT_GT(files.size(), 20u);
  for (const auto& [folder, count] : files) {
    EXPECT_LE(count, kMostFiles) << folder << " holds " << count << " source files";
  }
}

}  // namespace
}  // namespace lacuna::structure
