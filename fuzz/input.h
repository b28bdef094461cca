// What fuzz targets share: inputs as text and as files, and which exceptions are answers.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Does `read`; an error of lacuna's is an answer, any other exception a finding.
template <class Read>
void answer(Read&& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

/// Ends the process: what must hold of every input does not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// A file in memory, where there is /dev/shm, that goes with the process.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name) {
    std::error_code error;
    const std::string folder =
        std::filesystem::is_directory("/dev/shm", error) ? "/dev/shm" : "/tmp";
    path_ = folder + "/lacuna-fuzz-" + std::to_string(::getpid()) + "-" + name;
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void write(std::string_view bytes) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    require(file != nullptr, "the scratch file cannot be written");
    const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), file);
    require(written == bytes.size() && std::fclose(file) == 0, "the scratch file is not whole");
  }

 private:
  std::string path_;
};

/// The parts of an input, which stand between bytes 0xFF: `count` of them, the last with the rest.
inline std::vector<std::string_view> parts_of(std::string_view text, size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const size_t end = std::min(text.find('\xFF'), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  parts.push_back(text);
  return parts;
}

}  // namespace lacuna::fuzz
