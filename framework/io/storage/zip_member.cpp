// Unpacking a member of a ZIP archive, and writing one.
#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/zip_archive.hpp"

namespace lacuna {
namespace {

constexpr size_t kZipBlock = size_t{1} << 16;

[[noreturn]] void fail(const ZipMember& member, const std::string& problem) {
  throw DataError(fmt::format("'{}' in it is damaged: {}", member.name, problem));
}

// The packed bytes, a block at a time.
class PackedBytes {
 public:
  PackedBytes(std::istream& stream, const ZipMember& member)
      : stream_(stream), member_(member), left_(member.packed_bytes) {
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(member.begin));
  }
  uint64_t left() const { return left_; }
  void read(std::span<std::byte> into) {
    if (!stream_.read(reinterpret_cast<char*>(into.data()),
                      static_cast<std::streamsize>(into.size()))) {
      fail(member_, "it is cut off, or cannot be read");
    }
    left_ -= into.size();
  }

 private:
  std::istream& stream_;
  const ZipMember& member_;
  uint64_t left_;
};

class Inflater {
 public:
  explicit Inflater(const ZipMember& member) : member_(member) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) fail(member, "zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `into`; returns how much of it. `is_ended` afterwards tells whether the stream has ended.
  size_t read(PackedBytes& packed, std::span<std::byte> into) {
    size_t done = 0;
    while (done < into.size() && !is_ended) {
      const size_t room = std::min<size_t>(into.size() - done, std::numeric_limits<uInt>::max());
      stream_.next_out = reinterpret_cast<Bytef*>(into.data() + done);
      stream_.avail_out = static_cast<uInt>(room);
      run(packed);
      done += room - stream_.avail_out;
    }
    return done;
  }
  // Whether no bytes are left, neither packed nor unpacked.
  bool ends_here(PackedBytes& packed) {
    std::byte more{};
    return read(packed, {&more, 1}) == 0 && stream_.avail_in == 0 && packed.left() == 0;
  }
  bool is_ended = false;

 private:
  void run(PackedBytes& packed) {
    if (stream_.avail_in == 0 && packed.left() > 0) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(packed.left(), kZipBlock));
      packed.read(std::span(block_).first(count));
      stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_in = static_cast<uInt>(count);
    }
    const bool is_all = stream_.avail_in == 0;
    const uInt room = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    is_ended = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      fail(member_, stream_.msg == nullptr ? "it cannot be unpacked" : stream_.msg);
    }
    if (!is_ended && is_all && stream_.avail_out == room) fail(member_, "it ends too early");
  }

  const ZipMember& member_;
  z_stream stream_{};
  std::vector<std::byte> block_ = std::vector<std::byte>(kZipBlock);
};

uint32_t checksum(uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void put(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

void read_zip_member(std::istream& stream, const ZipMember& member, std::span<std::byte> into) {
  PackedBytes packed(stream, member);
  if (!member.is_deflated) {
    packed.read(into);
  } else {
    Inflater inflater(member);
    if (inflater.read(packed, into) != into.size()) fail(member, "it ends too early");
    if (!inflater.ends_here(packed)) fail(member, "it has more bytes than its directory states");
  }
  const uint32_t found = into.empty() ? 0 : checksum(0, into);
  if (found != member.crc) {
    fail(member, fmt::format("its checksum is {:08x}, expected {:08x}", found, member.crc));
  }
}

std::vector<std::byte> peek_zip_member(std::istream& stream, const ZipMember& member, size_t most) {
  std::vector<std::byte> bytes(static_cast<size_t>(std::min<uint64_t>(most, member.bytes)));
  PackedBytes packed(stream, member);
  if (!member.is_deflated) {
    packed.read(bytes);
  } else if (!bytes.empty()) {
    Inflater inflater(member);
    if (inflater.read(packed, bytes) != bytes.size()) fail(member, "it ends too early");
  }
  return bytes;
}

void ZipWriter::write(const std::string& bytes) {
  stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  Entry entry{.name = name, .bytes = 0, .offset = offset_, .crc = 0};
  for (const auto& part : parts) {
    entry.bytes += part.size();
    if (!part.empty()) entry.crc = checksum(entry.crc, part);
  }
  const bool is_large = entry.bytes >= zip64_from_;
  const uint64_t short_size = is_large ? 0xffffffff : entry.bytes;
  std::string header;
  put(header, 0x04034b50, 4);
  put(header, is_large ? 45 : 20, 2);
  put(header, 0x0800, 2);      // names are UTF-8
  put(header, 0, 2);           // stored
  put(header, 0x00210000, 4);  // the first day that the format knows: the same bytes every time
  put(header, entry.crc, 4);
  put(header, short_size, 4);
  put(header, short_size, 4);
  put(header, name.size(), 2);
  put(header, is_large ? 20 : 0, 2);
  header += name;
  if (is_large) {
    put(header, 1, 2);
    put(header, 16, 2);
    put(header, entry.bytes, 8);
    put(header, entry.bytes, 8);
  }
  write(header);
  for (const auto& part : parts) {
    stream_.write(reinterpret_cast<const char*>(part.data()),
                  static_cast<std::streamsize>(part.size()));
  }
  offset_ += entry.bytes;
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t begin = offset_;
  for (const Entry& entry : entries_) {
    const bool is_large = entry.bytes >= zip64_from_, is_far = entry.offset >= zip64_from_;
    std::string extra;
    if (is_large || is_far) {
      put(extra, 1, 2);
      put(extra, (is_large ? 16 : 0) + (is_far ? 8 : 0), 2);
      if (is_large) put(extra, entry.bytes, 8);
      if (is_large) put(extra, entry.bytes, 8);
      if (is_far) put(extra, entry.offset, 8);
    }
    const uint64_t short_size = is_large ? 0xffffffff : entry.bytes;
    std::string record;
    put(record, 0x02014b50, 4);
    put(record, extra.empty() ? 20 : 45, 2);
    put(record, extra.empty() ? 20 : 45, 2);
    put(record, 0x0800, 2);
    put(record, 0, 2);
    put(record, 0x00210000, 4);
    put(record, entry.crc, 4);
    put(record, short_size, 4);
    put(record, short_size, 4);
    put(record, entry.name.size(), 2);
    put(record, extra.size(), 2);
    put(record, 0, 2);  // comment
    put(record, 0, 2);  // disk
    put(record, 0, 2);
    put(record, 0, 4);
    put(record, is_far ? 0xffffffff : entry.offset, 4);
    write(record + entry.name + extra);
  }
  const uint64_t bytes = offset_ - begin, end = offset_, count = entries_.size();
  std::string record;
  const bool is_large = begin >= zip64_from_ || bytes >= zip64_from_ || count >= 0xffff;
  if (is_large) {
    put(record, 0x06064b50, 4);
    put(record, 44, 8);
    put(record, 45, 2);
    put(record, 45, 2);
    put(record, 0, 8);  // disks
    for (const uint64_t number : {count, count, bytes, begin}) put(record, number, 8);
    put(record, 0x07064b50, 4);
    put(record, 0, 4);
    put(record, end, 8);
    put(record, 1, 4);
  }
  put(record, 0x06054b50, 4);
  put(record, 0, 4);
  put(record, is_large ? 0xffff : count, 2);
  put(record, is_large ? 0xffff : count, 2);
  put(record, is_large ? 0xffffffff : bytes, 4);
  put(record, is_large ? 0xffffffff : begin, 4);
  put(record, 0, 2);
  write(record);
}

}  // namespace lacuna
