// The public surface: which headers are installed, and that every header stands alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "paths.h"
#include "structure/rooms.h"
#include "structure/sources.h"

namespace lacuna::structure {
namespace {

namespace fs = std::filesystem;

// The headers that a list of cmake/ names.
std::set<std::string> listed(const std::string& name) {
  std::set<std::string> headers;
  for (const std::string& line : read_source(kSourceFolder, "cmake/" + name).lines) {
    if (line.empty() || line.starts_with("#")) continue;
    if (!line.ends_with("/*.h")) {
      EXPECT_TRUE(headers.insert(line).second) << name << " holds twice: " << line;
      continue;
    }
    for (const SourceFile& file : library_sources()) {
      if (file.folder() + "/*.h" == line && file.ends_with(".h")) headers.insert(file.path);
    }
  }
  return headers;
}

TEST(Surface, EveryRoomWithSourcesIsBuilt) {
  std::set<std::string> of_build;
  const std::regex call(R"(^ *lacuna_room\(([^ )]+)[ )].*$)");
  const std::regex loop(R"(^foreach\(([a-z]+) ([a-z_ ]+)\)$)");
  std::smatch match;
  std::string variable, values;
  for (const std::string& line : read_source(kSourceFolder, "CMakeLists.txt").lines) {
    if (std::regex_match(line, match, loop)) {
      variable = match[1], values = match[2];
    } else if (std::regex_match(line, match, call)) {
      const std::string path = match[1];
      const size_t place = path.find("${");
      if (place == std::string::npos) {
        of_build.insert(path);
        continue;
      }
      ASSERT_EQ(path.substr(place), "${" + variable + "}");
      std::istringstream words(values);
      for (std::string word; words >> word;) of_build.insert(path.substr(0, place) + word);
    }
  }
  std::set<std::string> of_table;
  for (const Room& room : read_rooms()) {
    const fs::path folder = fs::path(kSourceFolder) / room.path;
    const auto is_source = [](const fs::directory_entry& entry) {
      return entry.path().extension() == ".cpp";
    };
    // A room of headers alone is no target.
    if (std::ranges::any_of(fs::directory_iterator(folder), is_source)) of_table.insert(room.path);
  }
  EXPECT_EQ(of_build, of_table);
}

// CMake gathers a room's files from there, and installs them.
// A folder of tests that no program takes is compiled by nobody.
TEST(Surface, EveryTestIsPartOfAProgram) {
  std::vector<std::string> folders = {"structure"};  // in its own CMakeLists.txt
  const std::regex call(R"(^ *lacuna_tests\([a-z_]+ ([a-z_/]+)[ )].*$)");
  std::smatch match;
  for (const std::string& line : read_source(kSourceFolder, "tests/CMakeLists.txt").lines) {
    if (std::regex_match(line, match, call)) folders.push_back(match[1]);
  }
  const fs::path tests = fs::path(kSourceFolder) / "tests";
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    const std::string path = fs::relative(entry.path(), tests).generic_string();
    if (!path.ends_with("_test.cpp")) continue;
    EXPECT_TRUE(std::ranges::any_of(folders, [&](const std::string& folder) {
      return path.starts_with(folder + "/");
    })) << path;
  }
}

TEST(Surface, FilesLieInTheirRoomsFolderOrInOps) {
  const auto rooms = rooms_by_path();
  for (const SourceFile& file : library_sources()) {
    const std::string room = room_of(file.path, rooms);
    EXPECT_TRUE(file.folder() == room || file.folder() == room + "/ops") << file.path;
  }
}

TEST(Surface, HeadersThatAreListedAreThoseNamedH) {
  const std::set<std::string> users = listed("public_headers.txt"),
                              authors = listed("extension_headers.txt");
  EXPECT_GT(users.size(), 40u);
  std::set<std::string> both = users, found;
  for (const std::string& header : authors) {
    EXPECT_TRUE(both.insert(header).second) << header << " is in both lists";
  }
  for (const SourceFile& file : library_sources()) {
    if (file.ends_with(".h")) found.insert(file.path);
  }
  EXPECT_EQ(found, both) << "a header that is not installed is named .hpp";
}

// The other half of "every header stands alone": those with a .cpp are compiled first in it, so
// that only the rest is compiled by itself (see CMakeLists.txt of this folder).
TEST(Surface, SourcesIncludeTheirOwnHeaderFirst) {
  const std::vector<SourceFile> files = library_sources();
  std::set<std::string> paths;
  for (const SourceFile& file : files) paths.insert(file.path);
  int sources_with_header = 0;
  for (const SourceFile& file : files) {
    if (!file.ends_with(".cpp")) continue;
    const std::string stem = file.path.substr(0, file.path.size() - 4);
    for (const char* end : {".h", ".hpp"}) {
      if (!paths.contains(stem + end)) continue;
      ++sources_with_header;
      const std::vector<Include> all = includes(file);
      ASSERT_FALSE(all.empty()) << file.path;
      EXPECT_EQ(all.front().path, stem + end) << at(file, all.front().line) << "is not its header";
    }
  }
  EXPECT_GT(sources_with_header, 100);
}

// The precompiled standard headers are there whether a source includes them or not, so the compiler
// does not notice an #include that is missing: what a header of ours names, it or a header of ours
// that it includes must include.
TEST(Surface, HeadersIncludeTheStandardHeadersOfWhatTheyName) {
  const std::vector<std::pair<std::regex, std::set<std::string>>> names = [] {
    const std::vector<std::pair<const char*, std::set<std::string>>> table = {
        {"(max|min|sort|fill|copy|clamp|ranges::[a-z_]+)", {"algorithm"}},
        {"array<", {"array", "span"}},
        {"(abs|sqrt|isnan|isfinite|exp|log|pow)\\(", {"cmath"}},
        {"mem(cpy|set|cmp)", {"cstring"}},
        {"function<", {"functional"}},
        {"numeric_limits", {"limits"}},
        {"map<", {"map"}},
        {"(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)", {"memory"}},
        {"(accumulate|iota)\\(", {"numeric"}},
        {"(optional<|nullopt)", {"optional"}},
        {"set<", {"set"}},
        {"span<", {"span"}},
        {"(string\\b|to_string)", {"string"}},
        {"string_view", {"string", "string_view"}},
        {"(move\\(|pair<|exchange\\()", {"utility", "map", "memory", "string", "vector"}},
        {"(variant<|get_if|visit\\()", {"variant"}},
        {"vector<", {"vector"}},
    };
    std::vector<std::pair<std::regex, std::set<std::string>>> compiled;
    for (const auto& [name, headers] : table) {
      compiled.emplace_back(std::regex(std::string("(^|[^a-z_:])std::") + name), headers);
    }
    compiled.emplace_back(std::regex("(^|[^a-z_])u?int(8|16|32|64)_t"),
                          std::set<std::string>{"cstdint"});
    return compiled;
  }();
  std::map<std::string, SourceFile> headers;
  for (SourceFile& file : library_sources()) {
    if (!file.ends_with(".h") && !file.ends_with(".hpp")) continue;
    std::string path = file.path;
    headers.emplace(std::move(path), std::move(file));
  }
  for (const auto& [path, file] : headers) {
    std::set<std::string> seen = {path}, standard;
    for (std::vector<std::string> waiting = {path}; !waiting.empty();) {
      const SourceFile& next = headers.at(waiting.back());
      waiting.pop_back();
      for (const Include& include : includes(next)) {
        if (!include.is_ours) {
          standard.insert(include.path);
        } else if (headers.contains(include.path) && seen.insert(include.path).second) {
          waiting.push_back(include.path);
        }
      }
    }
    for (const auto& [name, any_of] : names) {
      std::vector<std::string> common;
      std::ranges::set_intersection(standard, any_of, std::back_inserter(common));
      if (!common.empty()) continue;
      for (size_t i = 0; i < file.lines.size(); ++i) {
        const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
        EXPECT_FALSE(std::regex_search(code, name))
            << at(file, static_cast<int>(i) + 1) << "needs <" << *any_of.begin() << ">: " << code;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::structure
