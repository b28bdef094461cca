// Who may include whom: the table of docs/development/architecture.md, held against the #include
// lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

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

// "index_of(Work)", "Rows" of a type or an alias, "kMost": what a line at the margin defines; empty
// where it defines nothing. `text` goes on to the first brace, semicolon or equals sign.
std::string defined_name(std::string text) {
  for (const char* type : {"class ", "struct ", "enum class ", "using "}) {
    if (!text.starts_with(type)) continue;
    if (text.starts_with("using ") && text.find('=') == std::string::npos) return "";
    const size_t begin = std::string_view(type).size();
    return text.substr(begin, text.find_first_of(" :;{", begin) - begin);
  }
  text = text.substr(0, text.find_first_of("{;="));
  const size_t parameters = text.find('(');
  std::string name = text.substr(0, parameters);
  while (name.ends_with(' ')) name.pop_back();
  name = name.substr(name.find_last_of(" *&") + 1);
  if (name.empty() || text.find(' ') == std::string::npos) return "";
  if (parameters == std::string::npos) return name.starts_with('k') ? name : "";
  // The types of the parameters, whose names end them.
  std::string types;
  std::istringstream list(text.substr(parameters + 1, text.rfind(')') - parameters - 1));
  for (std::string one; std::getline(list, one, ',');) {
    while (one.starts_with(' ')) one.erase(0, 1);
    types += one.substr(0, one.find_last_of(" *&") + 1) + ",";
  }
  return name + "(" + types + ")";
}

// The rooms that LACUNA_UNITY compiles as one source: the lines of cmake/unity_rooms.txt, by room.
std::map<std::string, std::string> rooms_compiled_together() {
  std::map<std::string, std::string> line_of;
  std::ifstream file(std::filesystem::path(kSourceFolder) / "cmake/unity_rooms.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream rooms(line);
    for (std::string room; rooms >> room;) {
      EXPECT_TRUE(line_of.emplace(room, line).second) << room << " stands there twice";
    }
  }
  return line_of;
}

TEST(Rooms, ThatAreCompiledTogetherExist) {
  const auto rooms = rooms_by_path();
  const auto line_of = rooms_compiled_together();
  EXPECT_GT(line_of.size(), 50u);
  for (const auto& [room, line] : line_of) EXPECT_TRUE(rooms.contains(room)) << room;
}

// Sources that are compiled as one share an anonymous namespace.
TEST(Rooms, HaveDifferentNamesInTheirAnonymousNamespaces) {
  const auto rooms = rooms_by_path();
  const auto line_of = rooms_compiled_together();
  // One of these alone is compiled for one machine, or each by itself.
  const auto is_apart = [](const SourceFile& file) {
    return file.path.starts_with("framework/kernels/int8/int8_avx") ||
           file.path == "framework/kernels/int8/int8_plain.cpp";
  };
  // Where a name of a unit was found, and how it is defined.
  std::map<std::string, std::pair<std::string, std::string>> first;
  for (const SourceFile& file : library_sources()) {
    if (!file.ends_with(".cpp") || is_apart(file)) continue;
    const std::string room = room_of(file.path, rooms);
    const auto line = line_of.find(room);
    const std::string unit = line == line_of.end() ? room : line->second;
    bool is_inside = false;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (file.lines[i] == "namespace {") is_inside = true;
      if (file.lines[i].starts_with("}  // namespace")) is_inside = false;
      const char begin = file.lines[i].empty() ? ' ' : file.lines[i][0];
      if (!is_inside || (!std::isalpha(static_cast<unsigned char>(begin)) && begin != '['))
        continue;
      std::string text = file.lines[i];
      while (text.find_first_of("{;=") == std::string::npos && ++i < file.lines.size()) {
        text += file.lines[i];
      }
      const std::string name = defined_name(text);
      if (name.empty() || name.starts_with("namespace") || text.starts_with("template")) continue;
      const auto [found, is_new] = first.emplace(unit + ": " + name, std::pair(file.path, text));
      const auto& [path, there] = found->second;
      // Two aliases may be in namespaces of instruction sets, or equal.
      const bool are_aliases = text.starts_with("using ") && there.starts_with("using ");
      EXPECT_TRUE(is_new || path == file.path || are_aliases)
          << file.path << " and " << path << " both define " << name;
    }
  }
  EXPECT_GT(first.size(), 500u);
}

// A folder that holds more is two subjects.
TEST(Rooms, AreSmallEnoughToKnow) {
  constexpr int kMostFiles = 44;
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

TEST(Rooms, HaveFilesThatCanBeRead) {
  constexpr size_t kMostLines = 400;
  int files = 0;
  for (const SourceFile& file :
       read_sources({"framework", "layers", "optimizers", "sparsity", "python", "tests", "bench",
                     "examples", "fuzz/targets", "scripts", "cmake"})) {
    for (const char* end : {".h", ".hpp", ".inc", ".cpp", ".py", ".sh", ".cmake"}) {
      if (!file.ends_with(end)) continue;
      ++files;
      EXPECT_LE(file.lines.size(), kMostLines) << file.path;
    }
  }
  EXPECT_GT(files, 1000);
}

}  // namespace
}  // namespace lacuna::structure
