// The project's own files, as text: what the tests of its structure read.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "paths.h"

namespace lacuna::structure {

/// A file of the project: its path from the project's root, and its lines.
struct SourceFile {
  std::string path;
  std::vector<std::string> lines;

  std::string folder() const { return path.substr(0, path.rfind('/')); }
  bool ends_with(std::string_view end) const { return path.ends_with(end); }
};

/// A line that includes something: what stands between the quotes or brackets.
struct Include {
  std::string path;  ///< without "lacuna/" where the file is one of ours
  bool is_ours = false;
  int line = 0;

  std::string folder() const { return path.substr(0, path.rfind('/')); }
};

inline SourceFile read_source(const std::filesystem::path& root, const std::string& path) {
  std::ifstream in(root / path);
  if (!in) throw std::runtime_error("cannot read " + path);
  SourceFile file{path, {}};
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

/// All files below the given folders (or files) of the project, by path.
inline std::vector<SourceFile> read_sources(const std::vector<std::string>& folders) {
  const std::filesystem::path root = kSourceFolder;
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (std::filesystem::is_regular_file(root / folder)) {
      files.push_back(read_source(root, folder));
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      files.push_back(
          read_source(root, std::filesystem::relative(entry.path(), root).generic_string()));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

/// The folders that make up the library.
inline std::vector<SourceFile> library_sources() {
  return read_sources({"framework", "layers", "optimizers", "sparsity"});
}

inline std::vector<Include> includes(const SourceFile& file) {
  std::vector<Include> found;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const size_t hash = line.find_first_not_of(' ');
    if (hash == std::string::npos || !line.substr(hash).starts_with("#include")) continue;
    const size_t begin = line.find_first_of("\"<");
    const size_t end = line.find_last_of("\">");
    if (begin == std::string::npos || end <= begin) continue;  // a macro stands for the name
    std::string path = line.substr(begin + 1, end - begin - 1);
    const bool is_ours = path.starts_with("lacuna/");
    if (is_ours) path.erase(0, std::string_view("lacuna/").size());
    found.push_back({std::move(path), is_ours, static_cast<int>(i) + 1});
  }
  return found;
}

inline std::string at(const SourceFile& file, int line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

}  // namespace lacuna::structure
