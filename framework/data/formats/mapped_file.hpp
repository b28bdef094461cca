// MappedFile: a file's bytes, looked at where they lie on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace lacuna {

/// Bytes that any thread may read: what is looked at comes into memory, and leaves it when that is
/// scarce. The file must not change.
class MappedFile {
 public:
  /// *Errors:* DataError with the path when the file cannot be opened or mapped, or is empty.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(bytes_), size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  void* bytes_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lacuna
