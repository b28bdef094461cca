// The table of rooms in docs/development/architecture.md, read.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "paths.h"
#include "structure/sources.h"

namespace lacuna::structure {

/// A row "| `path` | what it holds | `room`, … that it may include |".
struct Room {
  std::string path;
  std::set<std::string> may_include;
};

/// The words in backquotes in a piece of text.
inline std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = text.find('`'); begin != std::string::npos;) {
    const size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    words.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('`', end + 1);
  }
  return words;
}

/// What stands between the bars of a row.
inline std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> found;
  for (size_t begin = 1, end; (end = row.find('|', begin)) != std::string::npos; begin = end + 1) {
    const std::string cell = row.substr(begin, end - begin);
    const size_t first = cell.find_first_not_of(' ');
    if (first == std::string::npos) {
      found.emplace_back();
    } else {
      found.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
  }
  return found;
}

/// The rooms in the order of the table.
inline std::vector<Room> read_rooms() {
  std::vector<Room> rooms;
  bool is_in_table = false;
  for (const std::string& line :
       read_source(kSourceFolder, "docs/development/architecture.md").lines) {
    if (line.starts_with("| room |")) is_in_table = true;
    if (!line.starts_with("|")) is_in_table = false;
    if (!is_in_table || !line.starts_with("| `")) continue;
    const std::vector<std::string> row = cells(line);
    if (row.size() != 3)
      throw std::runtime_error("docs/development/architecture.md: not three cells: " + line);
    Room room{quoted(row[0]).front(), {}};
    for (const std::string& other : quoted(row[2])) room.may_include.insert(other);
    rooms.push_back(std::move(room));
  }
  return rooms;
}

/// The rooms by path.
inline std::map<std::string, Room> rooms_by_path() {
  std::map<std::string, Room> rooms;
  for (Room& room : read_rooms()) {
    std::string path = room.path;
    rooms.emplace(std::move(path), std::move(room));
  }
  return rooms;
}

/// The room that a file is in: that of its folder, or of the nearest folder above. Empty: none.
inline std::string room_of(const std::string& file, const std::map<std::string, Room>& rooms) {
  std::string folder = file.substr(0, file.rfind('/'));
  while (!folder.empty() && !rooms.contains(folder)) {
    const size_t slash = folder.rfind('/');
    folder = slash == std::string::npos ? "" : folder.substr(0, slash);
  }
  return folder;
}

}  // namespace lacuna::structure
