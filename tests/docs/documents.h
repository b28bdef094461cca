// The code blocks of the project's documents.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "paths.h"

namespace lacuna::documents {

/// The text between ```language and ``` fences, and the line of the document it begins in.
struct Block {
  std::string text;
  int line = 0;
};

inline std::string source_path(const std::string& path) {
  return std::string(kSourceFolder) + "/" + path;
}

inline std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream in(source_path(path));
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// All blocks in a language of a document, in order.
inline std::vector<Block> read_blocks(const std::string& path, const std::string& language) {
  std::vector<Block> blocks;
  bool is_inside = false;
  int line_number = 0;
  for (const std::string& line : read_lines(path)) {
    ++line_number;
    if (is_inside && line == "```") {
      is_inside = false;
    } else if (is_inside) {
      blocks.back().text += line + "\n";
    } else if (line == "```" + language) {
      is_inside = true;
      blocks.push_back({"", line_number + 1});
    }
  }
  return blocks;
}

}  // namespace lacuna::documents
