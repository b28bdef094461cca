#include "lacuna/framework/records/event_file.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {
namespace {

std::array<uint32_t, 256> castagnoli_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

// A checksum stored next to what it is of is rotated and shifted, as the format asks for.
uint32_t masked(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

void append_little_endian(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Protocol buffers: a field is its number and wire type, then the value.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>((value & 0x7f) | 0x80));
  to.push_back(static_cast<char>(value));
}

void append_key(std::string& to, uint64_t field, Wire wire) {
  append_varint(to, field << 3 | wire);
}

void add_integer(std::string& to, uint64_t field, int64_t value) {
  append_key(to, field, kVarint);
  append_varint(to, static_cast<uint64_t>(value));
}

void add_bytes(std::string& to, uint64_t field, std::string_view bytes) {
  append_key(to, field, kBytes);
  append_varint(to, bytes.size());
  to += bytes;
}

void add_double(std::string& to, uint64_t field, double value) {
  append_key(to, field, kFixed64);
  append_little_endian(to, std::bit_cast<uint64_t>(value), 8);
}

void add_float(std::string& to, uint64_t field, float value) {
  append_key(to, field, kFixed32);
  append_little_endian(to, std::bit_cast<uint32_t>(value), 4);
}

std::string event_with(int64_t step, double wall_time, const std::string& summary) {
  std::string event;
  add_double(event, 1, wall_time);
  add_integer(event, 2, step);
  add_bytes(event, 5, summary);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = castagnoli_table();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(std::string path, double wall_time) : path_(std::move(path)) {
  require_plain_file(path_);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  std::string event;
  add_double(event, 1, wall_time);
  add_bytes(event, 3, "brain.Event:2");
  append(event);
}

void EventFile::append(std::string_view event) {
  std::string length;
  append_little_endian(length, event.size(), 8);
  std::string record = length;
  append_little_endian(record, masked(length), 4);
  record += event;
  append_little_endian(record, masked(event), 4);
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
  file_.flush();
  if (!file_) throw StateError("cannot write '" + path_ + "': " + std::strerror(errno));
}

void EventFile::write(int64_t step, double wall_time, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    add_bytes(value, 1, tag);
    add_float(value, 2, static_cast<float>(number));
    add_bytes(summary, 1, value);
  }
  append(event_with(step, wall_time, summary));
}

void EventFile::write(int64_t step, double wall_time, const std::string& tag,
                      const MaskPicture& picture) {
  constexpr int64_t kColours = 3;
  std::string image;
  add_integer(image, 1, picture.height);
  add_integer(image, 2, picture.width);
  add_integer(image, 3, kColours);
  add_bytes(image, 4, picture.png);
  std::string value, summary;
  add_bytes(value, 1, tag);
  add_bytes(value, 4, image);
  add_bytes(summary, 1, value);
  append(event_with(step, wall_time, summary));
}

}  // namespace lacuna
