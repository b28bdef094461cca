// Small data files in a folder that goes away with the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "lacuna/framework/core/error.h"

namespace lacuna::testing {

/// A fresh folder, removed with all it holds at the end of the scope.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lacuna_data_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw StateError("cannot make " + name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  std::string write_gzip(const std::string& name, std::string_view bytes) const {
    gzFile out = gzopen(file(name).c_str(), "wb");
    gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(out);
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

/// The whole of a file.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A number as IDX files hold it: four bytes, the highest first.
inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx_images(uint32_t count, uint32_t rows, uint32_t columns,
                              std::string_view pixels) {
  return big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns) +
         std::string(pixels);
}

inline std::string idx_labels(uint32_t count, std::string_view labels) {
  return big_endian(0x801) + big_endian(count) + std::string(labels);
}

/// The message of the `Exception` that `call` throws; fails the test when it throws none.
template <class Exception, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace lacuna::testing
