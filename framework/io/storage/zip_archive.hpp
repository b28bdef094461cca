// ZIP archives as far as NumPy's .npz files need them: members stored or deflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lacuna {

/// A file in an archive.
struct ZipMember {
  std::string name;
  bool is_deflated = false;  ///< else stored as it is
  uint64_t packed_bytes = 0, bytes = 0;
  uint32_t crc = 0;
  uint64_t begin = 0;  ///< of its packed bytes in the archive
};

/// The members of an archive, after every check that needs no unpacking: the directory at the end
/// and the header in front of each member agree, members overlap neither each other nor the
/// directory, no name is there twice, none is encrypted or packed otherwise than stored or
/// deflated, and none claims more bytes than its packed ones can unpack to. ZIP64 is read.
///
/// *Errors:* DataError, without the file's name. *Cost:* O(directory), which the file's size
/// bounds.
std::vector<ZipMember> read_zip_directory(std::istream& stream, uint64_t file_bytes);

/// Unpacks a member into exactly its bytes and compares the checksum. *Errors:* DataError with the
/// member's name when it is damaged. *Requires* `into.size() == member.bytes`.
void read_zip_member(std::istream& stream, const ZipMember& member, std::span<std::byte> into);

/// The first bytes of a member, fewer where it ends; nothing is compared. *Errors:* DataError.
std::vector<std::byte> peek_zip_member(std::istream& stream, const ZipMember& member, size_t most);

/// Writes members one after the other, stored. Sizes and offsets from `zip64_from` on are written
/// as ZIP64 has them (a smaller number is for tests).
class ZipWriter {
 public:
  explicit ZipWriter(std::ostream& stream, uint64_t zip64_from = 0xffffffff)
      : stream_(stream), zip64_from_(zip64_from) {}
  /// Adds a member made of parts. Errors are the stream's.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  /// Writes the directory. To be called last.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t bytes, offset;
    uint32_t crc;
  };
  void write(const std::string& bytes);

  std::ostream& stream_;
  uint64_t zip64_from_;
  uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace lacuna
