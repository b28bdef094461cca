// Small data files of every format, and reading them back.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "temporary_folder.h"

namespace lacuna::test {

/// Writes a file compressed and returns its path.
inline std::string write_gzip(const std::string& path, std::string_view bytes) {
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  return path;
}

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

}  // namespace lacuna::test
