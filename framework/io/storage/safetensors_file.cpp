#include "lacuna/framework/io/storage/safetensors_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <tuple>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/element_type.hpp"
#include "lacuna/framework/io/storage/safetensors_header.hpp"

namespace lacuna {
namespace {

constexpr uint64_t kLengthBytes = 8;

struct Dtype {
  std::string_view name;
  uint64_t bits;
};
constexpr std::array<Dtype, 22> kDtypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

uint64_t bits_of(const SafetensorsRecord& tensor) {
  const auto found = std::ranges::find(kDtypes, tensor.dtype, &Dtype::name);
  if (found != kDtypes.end()) return found->bits;
  std::vector<std::string> names;
  for (const Dtype& dtype : kDtypes) names.emplace_back(dtype.name);
  throw DataError(fmt::format("the tensor '{}' has the unknown dtype '{}'; {}", tensor.name,
                              tensor.dtype, suggest_name(tensor.dtype, names)));
}

std::string to_string(const std::vector<uint64_t>& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ", ", size);
  return "[" + text + "]";
}

bool multiply(uint64_t& product, uint64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product);
}

// Bytes of its values, by type and shape.
uint64_t bytes_of(const SafetensorsRecord& tensor) {
  uint64_t bits = 1;
  bool fits = true;
  for (const uint64_t size : tensor.sizes) fits = fits && multiply(bits, size);
  if (!fits || !multiply(bits, bits_of(tensor))) {
    throw DataError(fmt::format("the tensor '{}' of shape {} is too large", tensor.name,
                                to_string(tensor.sizes)));
  }
  if (bits % 8 == 0) return bits / 8;
  throw DataError(
      fmt::format("the tensor '{}' ({} {}) has {} bits, which is not a whole number of bytes",
                  tensor.name, tensor.dtype, to_string(tensor.sizes), bits));
}

Shape shape_of(const SafetensorsRecord& tensor) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  std::vector<int64_t> sizes;
  for (const uint64_t size : tensor.sizes) {
    if (size > kMost) {
      throw DataError(fmt::format("the tensor '{}' of shape {} has a size beyond 63 bits",
                                  tensor.name, to_string(tensor.sizes)));
    }
    sizes.push_back(static_cast<int64_t>(size));
  }
  try {
    return Shape(std::span<const int64_t>(sizes));
  } catch (const ShapeError& error) {  // of sizes that only a zero behind them makes possible
    throw DataError(fmt::format("the tensor '{}': {}", tensor.name, error.what()));
  }
}

// From the header's records, in the order of their bytes, which must be all there are behind it.
std::vector<SafetensorsEntry> lay_out(std::vector<SafetensorsRecord> records, uint64_t data_begin,
                                      uint64_t data_bytes) {
  std::ranges::sort(records, {}, [](const SafetensorsRecord& record) {
    return std::tie(record.begin, record.end, record.name);
  });
  std::vector<SafetensorsEntry> entries;
  uint64_t end = 0;
  for (const SafetensorsRecord& record : records) {
    const uint64_t bytes = bytes_of(record);
    if (record.begin != end || record.end < record.begin) {
      throw DataError(fmt::format(
          "the tensor '{}' lies at bytes {} to {} of the data; expected it to begin at {}, where "
          "the one before it ends",
          record.name, record.begin, record.end, end));
    }
    if (record.end - record.begin != bytes) {
      throw DataError(fmt::format("the tensor '{}' ({} {}) has {} bytes; expected {}", record.name,
                                  record.dtype, to_string(record.sizes), record.end - record.begin,
                                  bytes));
    }
    if (record.end > data_bytes) {
      throw DataError(fmt::format(
          "it is cut off: the tensor '{}' ends at byte {} of the data, which has {} bytes",
          record.name, record.end, data_bytes));
    }
    end = record.end;
    entries.push_back({.name = record.name,
                       .dtype = record.dtype,
                       .shape = shape_of(record),
                       .begin = static_cast<int64_t>(data_begin + record.begin),
                       .bytes = static_cast<int64_t>(bytes)});
  }
  if (end != data_bytes) {
    throw DataError(fmt::format("the last tensor ends at byte {} of the data, which has {} bytes",
                                end, data_bytes));
  }
  return entries;
}

std::string reason() {
  return errno == 0 ? "it became shorter while it was read" : std::strerror(errno);
}

}  // namespace

bool SafetensorsEntry::is_float() const { return lacuna::is_float(element_type(dtype)); }

void SafetensorsFile::fail(const std::string& problem) const {
  throw DataError("'" + path_ + "' is not a valid safetensors file: " + problem +
                  "; download or write it again");
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  const std::string other = why_no_file(path_);
  if (!other.empty()) throw DataError(fmt::format("'{}' {}", path_, other));
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path_, error);  // fails on a folder, too
  if (error) throw DataError(fmt::format("cannot read '{}': {}", path_, error.message()));
  errno = 0;
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) throw DataError(fmt::format("cannot read '{}': {}", path_, std::strerror(errno)));
  uint64_t length = 0;
  if (size < kLengthBytes) fail(fmt::format("it has {} bytes, fewer than 8", size));
  stream.read(reinterpret_cast<char*>(&length), kLengthBytes);
  if (length > kMostHeaderBytes) {
    fail(fmt::format("its header would have {} bytes; the limit is {}", length, kMostHeaderBytes));
  }
  if (kLengthBytes + length > size) {
    fail(fmt::format("it is cut off: expected a header of {} bytes, found {} bytes in all", length,
                     size));
  }
  std::string text(length, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(length))) fail(reason());
  try {
    SafetensorsHeader header = parse_safetensors_header(text);
    metadata_ = std::move(header.metadata);
    tensors_ =
        lay_out(std::move(header.tensors), kLengthBytes + length, size - kLengthBytes - length);
  } catch (const DataError& problem) {
    fail(problem.what());
  }
}

const SafetensorsEntry& SafetensorsFile::tensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &SafetensorsEntry::name);
  if (found != tensors_.end()) return *found;
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : tensors_) names.push_back(entry.name);
  throw DataError(
      fmt::format("'{}' has no tensor '{}'; {}", path_, name, suggest_name(name, names)));
}

Tensor SafetensorsFile::read(const SafetensorsEntry& entry) const {
  if (!entry.is_float()) {
    throw DataError(fmt::format("the tensor '{}' in '{}' is {}; expected F32, F64, F16 or BF16",
                                entry.name, path_, entry.dtype));
  }
  Tensor values = Tensor::empty(entry.shape);
  const std::span<float> into(values.mutable_data(), static_cast<size_t>(values.numel()));
  if (entry.dtype == "F32") {
    read_bytes(entry, std::as_writable_bytes(into));
    return values;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
  read_bytes(entry, bytes);
  if (const auto problem = decode_floats(element_type(entry.dtype), bytes, into)) {
    throw DataError(fmt::format("the tensor '{}' in '{}' {}", entry.name, path_, *problem));
  }
  return values;
}

void SafetensorsFile::read_bytes(const SafetensorsEntry& entry, std::span<std::byte> into) const {
  errno = 0;
  std::ifstream stream(path_, std::ios::binary);
  stream.seekg(entry.begin);
  if (stream.read(reinterpret_cast<char*>(into.data()),
                  static_cast<std::streamsize>(into.size()))) {
    return;
  }
  throw DataError(
      fmt::format("cannot read the tensor '{}' in '{}': {}", entry.name, path_, reason()));
}

}  // namespace lacuna
