#include "lacuna/framework/data/formats/idx.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/byte_reader.hpp"

namespace lacuna {
namespace {

constexpr uint32_t kImageMagic = 0x00000803, kLabelMagic = 0x00000801;
// Larger than any image in this format; it also keeps count × rows × columns within 64 bits.
constexpr uint32_t kLargestSide = 65535;

std::string hex(uint32_t value) { return fmt::format("0x{:08x}", value); }

[[noreturn]] void fail_idx(const ByteReader& reader, const std::string& what) {
  throw DataError(reader.path().string() + ": " + what);
}

uint32_t read_number(ByteReader& reader, const char* what) {
  std::array<uint8_t, 4> bytes{};
  const size_t count = reader.read(bytes);
  if (count < bytes.size()) {
    fail_idx(reader,
             fmt::format("truncated: expected 4 bytes of {} in the header, found {}", what, count));
  }
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void require_magic(ByteReader& reader, uint32_t expected, const char* kind) {
  const uint32_t found = read_number(reader, "the magic number");
  if (found != expected) {
    fail_idx(reader, "wrong magic number: expected " + hex(expected) + " (IDX " + kind +
                         "), found " + hex(found));
  }
}

uint64_t read_count(ByteReader& reader, const char* kind) {
  const uint32_t count = read_number(reader, "the count");
  if (count == 0) fail_idx(reader, std::string("empty: the header says 0 ") + kind);
  return count;
}

// All of the data, which must be `expected` bytes. Read piece by piece, so that a header that lies
// makes for no large allocation.
std::vector<uint8_t> read_data(ByteReader& reader, uint64_t expected) {
  constexpr uint64_t kPiece = 1 << 20;
  std::vector<uint8_t> data;
  while (data.size() < expected) {
    const size_t begin = data.size();
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(kPiece, expected - begin));
    data.resize(begin + wanted);
    const size_t count = reader.read(std::span(data).subspan(begin));
    if (count < wanted) {
      fail_idx(reader,
               fmt::format("truncated: expected {} bytes of data after the header, found {}",
                           expected, begin + count));
    }
  }
  uint8_t more = 0;
  if (reader.read({&more, 1}) > 0) {
    fail_idx(reader,
             fmt::format("longer than its header says: expected the end of the file after {} "
                         "bytes of data, found more",
                         expected));
  }
  return data;
}

}  // namespace

IdxImages read_idx_images(const std::filesystem::path& path) {
  ByteReader reader(path);
  require_magic(reader, kImageMagic, "images");
  const uint64_t count = read_count(reader, "images");
  const uint64_t rows = read_number(reader, "the rows"),
                 columns = read_number(reader, "the columns");
  if (rows < 1 || rows > kLargestSide || columns < 1 || columns > kLargestSide) {
    fail_idx(reader, fmt::format("images of {} rows and {} columns; expected 1 to {}", rows,
                                 columns, kLargestSide));
  }
  return {static_cast<int64_t>(count), static_cast<int64_t>(rows), static_cast<int64_t>(columns),
          read_data(reader, count * rows * columns)};
}

std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path) {
  ByteReader reader(path);
  require_magic(reader, kLabelMagic, "labels");
  const uint64_t count = read_count(reader, "labels");
  return read_data(reader, count);
}

}  // namespace lacuna
