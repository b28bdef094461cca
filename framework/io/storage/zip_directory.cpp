// Reading a ZIP archive's directory. Source: PKWARE's APPNOTE.TXT, 4.3 and 4.5.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"

namespace lacuna {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20, kMostComment = 0xffff;
constexpr uint32_t kIn64 = 0xffffffff;  // what stands in 32 bits where the number is in ZIP64's
// Deflate makes at most 258 bytes of 2 bits: a member that claims more is no such stream.
constexpr uint64_t kMostRatio = 1032, kMostOverRatio = 1024;
constexpr uint16_t kEncrypted = 1 << 0, kSizesBehind = 1 << 3, kStrong = 1 << 6, kMasked = 1 << 13;

[[noreturn]] void fail(const std::string& problem) { throw DataError(problem); }

// Little-endian numbers of a piece of the file.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t at(size_t offset, size_t count) const {
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, count);
    return value;
  }
  uint16_t u16(size_t offset) const { return static_cast<uint16_t>(at(offset, 2)); }
  uint32_t u32(size_t offset) const { return static_cast<uint32_t>(at(offset, 4)); }
  uint64_t u64(size_t offset) const { return at(offset, 8); }

 private:
  std::span<const std::byte> bytes_;
};

std::vector<std::byte> read_at(std::istream& stream, uint64_t offset, uint64_t count) {
  std::vector<std::byte> bytes(count);
  stream.clear();
  stream.seekg(static_cast<std::streamoff>(offset));
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count))) {
    fail("it is cut off, or cannot be read");
  }
  return bytes;
}

struct Directory {
  uint64_t entries = 0, bytes = 0, begin = 0;
};

// ZIP64's directory in front of the end record, if there is one.
std::optional<Directory> read_end64(std::istream& stream, uint64_t end) {
  if (end < kLocator64Bytes + kEnd64Bytes) return std::nullopt;
  const auto locator = read_at(stream, end - kLocator64Bytes, kLocator64Bytes);
  const Fields where(locator);
  if (where.u32(0) != kLocator64) return std::nullopt;
  const uint64_t begin = where.u64(8);
  if (begin > end - kLocator64Bytes - kEnd64Bytes) fail("its ZIP64 directory lies outside of it");
  const auto record = read_at(stream, begin, kEnd64Bytes);
  const Fields fields(record);
  if (fields.u32(0) != kEnd64 || fields.u64(4) + 12 != end - kLocator64Bytes - begin) {
    fail("its ZIP64 end record is damaged");
  }
  if (where.u32(4) != 0 || where.u32(16) > 1 || fields.u32(16) != 0 || fields.u32(20) != 0 ||
      fields.u64(24) != fields.u64(32)) {
    fail("it is one part of an archive in several files");
  }
  Directory directory{.entries = fields.u64(32), .bytes = fields.u64(40), .begin = fields.u64(48)};
  if (directory.bytes > begin || directory.begin != begin - directory.bytes) {
    fail("its directory does not end where its ZIP64 end record begins");
  }
  return directory;
}

// The end record, which is the last thing in the file but for a comment.
Directory find_directory(std::istream& stream, uint64_t file_bytes) {
  if (file_bytes < kEndBytes)
    fail(fmt::format("it has {} bytes, fewer than an archive", file_bytes));
  const uint64_t tail_bytes = std::min<uint64_t>(file_bytes, kEndBytes + kMostComment);
  const auto tail = read_at(stream, file_bytes - tail_bytes, tail_bytes);
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    const Fields fields{std::span<const std::byte>(tail).subspan(at, kEndBytes)};
    if (fields.u32(0) != kEnd || at + kEndBytes + fields.u16(20) != tail.size()) continue;
    const uint64_t end = file_bytes - tail_bytes + at;
    if (const auto found = read_end64(stream, end)) return *found;
    if (fields.u16(4) != 0 || fields.u16(6) != 0 || fields.u16(8) != fields.u16(10)) {
      fail("it is one part of an archive in several files");
    }
    const Directory directory{
        .entries = fields.u16(10), .bytes = fields.u32(12), .begin = fields.u32(16)};
    if (directory.bytes > end || directory.begin != end - directory.bytes) {
      fail("its directory does not end where its end record begins");
    }
    return directory;
  }
  fail("it has no end record of an archive: it is not an archive, or is truncated");
}

// Numbers of a member, first as 32 bits have them, then from ZIP64's extra field.
struct Sizes {
  uint64_t bytes, packed, offset;

  void read_extra(std::span<const std::byte> extra, const std::string& name) {
    const bool wanted = bytes == kIn64 || packed == kIn64 || offset == kIn64;
    while (extra.size() >= 4) {
      const Fields fields(extra);
      const size_t length = fields.u16(2);
      if (length > extra.size() - 4) break;
      if (fields.u16(0) == 1 && wanted) return read_64(extra.subspan(4, length), name);
      extra = extra.subspan(4 + length);
    }
    if (wanted) fail(fmt::format("'{}' has no ZIP64 field with its sizes", name));
  }

 private:
  void read_64(std::span<const std::byte> field, const std::string& name) {
    for (uint64_t* value : {&bytes, &packed, &offset}) {
      if (*value != kIn64) continue;
      if (field.size() < 8) fail(fmt::format("the ZIP64 field of '{}' is cut off", name));
      *value = Fields(field).u64(0);
      field = field.subspan(8);
    }
  }
};

struct CentralEntry {
  ZipMember member;
  uint16_t flags = 0, method = 0;
  uint64_t offset = 0;  // of its header
};

void require_readable(const CentralEntry& entry) {
  const ZipMember& member = entry.member;
  if ((entry.flags & (kEncrypted | kStrong | kMasked)) != 0) {
    fail(fmt::format("'{}' in it is encrypted", member.name));
  }
  if (entry.method != 0 && entry.method != 8) {
    fail(fmt::format("'{}' in it is compressed by method {}; expected 0 (stored) or 8 (deflated)",
                     member.name, entry.method));
  }
  if (!member.is_deflated && member.bytes != member.packed_bytes) {
    fail(fmt::format("'{}' is stored, and has {} bytes in {}", member.name, member.bytes,
                     member.packed_bytes));
  }
  if (member.bytes / kMostRatio > member.packed_bytes + kMostOverRatio) {
    fail(fmt::format("'{}' claims to unpack {} bytes to {}, more than deflate can", member.name,
                     member.packed_bytes, member.bytes));
  }
}

// One entry; returns its length.
size_t read_central(std::span<const std::byte> bytes, CentralEntry& entry) {
  if (bytes.size() < kCentralBytes || Fields(bytes).u32(0) != kCentral) {
    fail("its directory is damaged");
  }
  const Fields fields(bytes);
  const size_t name = fields.u16(28), extra = fields.u16(30), comment = fields.u16(32);
  const size_t length = kCentralBytes + name + extra + comment;
  if (length > bytes.size()) fail("its directory is cut off");
  entry.member.name.assign(reinterpret_cast<const char*>(bytes.data()) + kCentralBytes, name);
  if (entry.member.name.find('\0') != std::string::npos) {
    fail(fmt::format("there is a zero byte in the name '{}'", printable(entry.member.name)));
  }
  entry.flags = fields.u16(8);
  entry.method = fields.u16(10);
  Sizes sizes{.bytes = fields.u32(24), .packed = fields.u32(20), .offset = fields.u32(42)};
  sizes.read_extra(bytes.subspan(kCentralBytes + name, extra), entry.member.name);
  entry.member.is_deflated = entry.method == 8;
  entry.member.crc = fields.u32(16);
  entry.member.bytes = sizes.bytes;
  entry.member.packed_bytes = sizes.packed;
  entry.offset = sizes.offset;
  require_readable(entry);
  return length;
}

// Holds the header in front of a member against the directory; gives the member its place.
void read_local(std::istream& stream, CentralEntry& entry, uint64_t end) {
  ZipMember& member = entry.member;
  const auto differs = [&](const char* what) {
    fail(fmt::format("the header of '{}' and the directory differ in {}", member.name, what));
  };
  const size_t name = member.name.size();
  if (entry.offset > end || end - entry.offset < kLocalBytes + name) {
    fail(fmt::format("'{}' lies outside of the archive", member.name));
  }
  const auto fixed = read_at(stream, entry.offset, kLocalBytes + name);
  const Fields fields(fixed);
  if (fields.u32(0) != kLocal)
    fail(fmt::format("there is no header where '{}' begins", member.name));
  if (fields.u16(26) != name ||
      std::memcmp(fixed.data() + kLocalBytes, member.name.data(), name) != 0) {
    differs("its name");
  }
  if (fields.u16(8) != entry.method) differs("how it is packed");
  if (((fields.u16(6) ^ entry.flags) & (kEncrypted | kSizesBehind)) != 0) differs("its flags");
  const uint64_t extra = fields.u16(28), begin = entry.offset + kLocalBytes + name + extra;
  if (begin > end || end - begin < member.packed_bytes) {
    fail(fmt::format("'{}' is cut off: it has {} bytes in the archive by its directory",
                     member.name, member.packed_bytes));
  }
  if ((entry.flags & kSizesBehind) == 0) {
    Sizes sizes{.bytes = fields.u32(22), .packed = fields.u32(18), .offset = 0};
    sizes.read_extra(read_at(stream, begin - extra, extra), member.name);
    if (sizes.bytes != member.bytes || sizes.packed != member.packed_bytes) differs("its size");
    if (fields.u32(14) != member.crc) differs("its checksum");
  }
  member.begin = begin;
}

void require_apart(std::vector<CentralEntry> entries) {
  std::ranges::sort(entries, {}, &CentralEntry::offset);
  for (size_t i = 1; i < entries.size(); ++i) {
    const ZipMember& before = entries[i - 1].member;
    if (before.begin + before.packed_bytes <= entries[i].offset) continue;
    fail(fmt::format("'{}' and '{}' overlap in it", before.name, entries[i].member.name));
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(std::istream& stream, uint64_t file_bytes) {
  const Directory directory = find_directory(stream, file_bytes);
  if (directory.entries > directory.bytes / kCentralBytes) fail("its directory is cut off");
  const auto bytes = read_at(stream, directory.begin, directory.bytes);
  std::vector<CentralEntry> entries(directory.entries);
  std::set<std::string> names;
  std::span<const std::byte> rest(bytes);
  for (CentralEntry& entry : entries) {
    rest = rest.subspan(read_central(rest, entry));
    if (!names.insert(entry.member.name).second) {
      fail(fmt::format("'{}' appears twice in it", entry.member.name));
    }
    read_local(stream, entry, directory.begin);
  }
  if (!rest.empty()) fail("its directory has more bytes than entries");
  require_apart(entries);
  std::vector<ZipMember> members;
  for (CentralEntry& entry : entries) members.push_back(std::move(entry.member));
  return members;
}

}  // namespace lacuna
