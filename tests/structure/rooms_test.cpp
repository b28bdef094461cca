// Who may include whom: the table of docs/architecture.md, held against the #include lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "structure/sources.h"

namespace lacuna::structure {
namespace {

using Rooms = std::map<std::string, std::set<std::string>>;

// The words in backquotes in a piece of text.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = text.find('`'); begin != std::string::npos;) {
    const size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    words.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('`', end + 1);
  }
  return words;
}

// The rows "| `room` | holds | may include: `room`, … |", in their order.
std::vector<std::pair<std::string, std::set<std::string>>> read_table() {
  std::vector<std::pair<std::string, std::set<std::string>>> table;
  const SourceFile document = read_source(LACUNA_SOURCE_DIR, "docs/architecture.md");
  bool is_in_table = false;
  for (const std::string& line : document.lines) {
    if (line.starts_with("| room |")) is_in_table = true;
    if (!line.starts_with("|")) is_in_table = false;
    if (!is_in_table || !line.starts_with("| `")) continue;
    const size_t last = line.rfind('|', line.size() - 2);
    const std::vector<std::string> allowed = quoted(line.substr(last));
    table.emplace_back(quoted(line).front(), std::set<std::string>(allowed.begin(), allowed.end()));
  }
  return table;
}

std::string room_of(const std::string& path, const Rooms& rooms) {
  std::string folder = path.substr(0, path.rfind('/'));
  while (!folder.empty() && !rooms.contains(folder)) {
    const size_t slash = folder.rfind('/');
    folder = slash == std::string::npos ? "" : folder.substr(0, slash);
  }
  return folder;
}

TEST(Rooms, TableHoldsEveryFolderAndPointsDownwards) {
  const auto table = read_table();
  const Rooms rooms(table.begin(), table.end());
  ASSERT_GE(rooms.size(), 12u);
  for (const SourceFile& file : library_sources()) {
    EXPECT_NE(room_of(file.path, rooms), "")
        << file.path << " is in no room of the table in docs/architecture.md";
  }
  std::set<std::string> above;
  for (const auto& [room, allowed] : table) {
    for (const std::string& other : allowed) {
      EXPECT_TRUE(above.contains(other))
          << room << " may include " << other << ", which is not above it in the table";
    }
    above.insert(room);
  }
}

TEST(Rooms, IncludeOnlyWhatTheTableAllows) {
  const auto table = read_table();
  const Rooms rooms(table.begin(), table.end());
  for (const SourceFile& file : library_sources()) {
    const std::string room = room_of(file.path, rooms);
    for (const Include& include : includes(file)) {
      if (!include.is_ours) continue;
      const std::string other = room_of(include.path, rooms);
      EXPECT_TRUE(other == room || rooms.at(room).contains(other))
          << at(file, include.line) << room << " may not include " << include.path
          << "; docs/architecture.md holds the table";
    }
  }
}

TEST(Rooms, NothingIncludesTheRoofOrTheUmbrella) {
  for (const SourceFile& file : library_sources()) {
    if (file.path.starts_with("framework/program/")) continue;
    for (const Include& include : includes(file)) {
      EXPECT_FALSE(include.is_ours &&
                   (include.path.starts_with("framework/program/") || include.path == "lacuna.h"))
          << at(file, include.line) << include.path;
    }
  }
}

TEST(Rooms, UmbrellaIncludesWhatExists) {
  const SourceFile umbrella = read_source(LACUNA_SOURCE_DIR, "lacuna.h");
  EXPECT_GT(includes(umbrella).size(), 40u);
  std::set<std::string> paths;
  for (const SourceFile& file : library_sources()) paths.insert(file.path);
  for (const Include& include : includes(umbrella)) {
    EXPECT_TRUE(paths.contains(include.path)) << include.path;
  }
  // Every layer, optimizer and algorithm is in it.
  const std::set<std::string> internal = {"layers/builtin.h", "optimizers/adam_moments.h"};
  for (const std::string& path : paths) {
    const bool is_below_framework = path.starts_with("framework/");
    if (!path.ends_with(".h") || is_below_framework || internal.contains(path)) continue;
    EXPECT_THAT(umbrella.lines, testing::Contains("#include \"lacuna/" + path + "\""));
  }
}

}  // namespace
}  // namespace lacuna::structure
