// ByteReader: the bytes of a file in order, unpacked where the file is gzipped.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>

namespace lacuna {

/// Reads a file from its beginning. A name that ends in .gz is unpacked on the way and its checksum
/// verified. *Errors:* DataError with the path when the file cannot be opened or read, and on a
/// gzip stream that is damaged, cut short or followed by other bytes.
class ByteReader {
 public:
  explicit ByteReader(std::filesystem::path path);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// Fills `out` from the file. Returns the number of bytes read: fewer than asked for only at the
  /// end of the file.
  size_t read(std::span<uint8_t> out);
  const std::filesystem::path& path() const { return path_; }

 private:
  class Gzip;
  size_t read_raw(std::span<uint8_t> out);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::unique_ptr<Gzip> gzip_;  // null for a plain file
};

}  // namespace lacuna
