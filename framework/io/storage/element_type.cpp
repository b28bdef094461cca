#include "lacuna/framework/io/storage/element_type.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace lacuna {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");

struct Facts {
  ElementType type;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<Facts, 14> kFacts = {{
    {ElementType::Bool, "BOOL", 1},
    {ElementType::I8, "I8", 1},
    {ElementType::U8, "U8", 1},
    {ElementType::I16, "I16", 2},
    {ElementType::U16, "U16", 2},
    {ElementType::I32, "I32", 4},
    {ElementType::U32, "U32", 4},
    {ElementType::I64, "I64", 8},
    {ElementType::U64, "U64", 8},
    {ElementType::F16, "F16", 2},
    {ElementType::BF16, "BF16", 2},
    {ElementType::F32, "F32", 4},
    {ElementType::F64, "F64", 8},
    {ElementType::Other, "other", 0},
}};

const Facts& facts(ElementType type) { return kFacts[static_cast<size_t>(type)]; }

template <class T>
T load(std::span<const std::byte> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half >> 15) << 31;
  const uint32_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {  // zero, or subnormal: fraction · 2⁻²⁴
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign == 0 ? value : -value;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// 1.0 in the bits of the element, which are one of two patterns for zero in a float.
uint64_t one_of(ElementType type) {
  switch (type) {
    case ElementType::F16:
      return 0x3c00;
    case ElementType::BF16:
      return 0x3f80;
    case ElementType::F32:
      return 0x3f800000;
    case ElementType::F64:
      return 0x3ff0000000000000;
    default:
      return 1;
  }
}

// What the first element is that is finite, and is not as a float.
std::optional<std::string> beyond_float(std::span<const std::byte> doubles,
                                        std::span<const float> floats) {
  for (size_t i = 0; i < floats.size(); ++i) {
    if (!std::isinf(floats[i]) || std::isinf(load<double>(doubles, i))) continue;
    return fmt::format(
        "has the value {} (its element {}, in row-major order), which is beyond the range of "
        "float32 (up to 3.4e38); scale or clip it in the tool that wrote it",
        load<double>(doubles, i), i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(ElementType type) { return facts(type).name; }

ElementType element_type(std::string_view safetensors_name) {
  const auto found = std::ranges::find(kFacts, safetensors_name, &Facts::name);
  return found == kFacts.end() ? ElementType::Other : found->type;
}

size_t element_bytes(ElementType type) { return facts(type).bytes; }

bool is_float(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::F16 ||
         type == ElementType::BF16;
}

bool is_integer(ElementType type) { return type >= ElementType::I8 && type <= ElementType::U64; }

std::optional<size_t> decode_integers(ElementType type, std::span<const std::byte> bytes,
                                      std::span<int64_t> into) {
  const size_t width = element_bytes(type);
  const bool has_sign = type == ElementType::I8 || type == ElementType::I16 ||
                        type == ElementType::I32 || type == ElementType::I64;
  const auto unused = static_cast<int>(64 - 8 * width);
  for (size_t i = 0; i < into.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (!has_sign && bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return i;
    // Moved up and down again, so that the sign fills what is in front.
    into[i] =
        has_sign ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
  }
  return std::nullopt;
}

std::optional<std::string> decode_floats(ElementType type, std::span<const std::byte> bytes,
                                         std::span<float> into) {
  if (into.empty()) return std::nullopt;
  switch (type) {
    case ElementType::F32:
      std::memcpy(into.data(), bytes.data(), into.size_bytes());
      return std::nullopt;
    case ElementType::F64:
      for (size_t i = 0; i < into.size(); ++i) into[i] = static_cast<float>(load<double>(bytes, i));
      return beyond_float(bytes, into);
    case ElementType::F16:
      for (size_t i = 0; i < into.size(); ++i) into[i] = from_half(load<uint16_t>(bytes, i));
      return std::nullopt;
    default:  // BF16
      for (size_t i = 0; i < into.size(); ++i) {
        into[i] = std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(bytes, i)) << 16);
      }
      return std::nullopt;
  }
}

std::optional<size_t> decode_mask(ElementType type, std::span<const std::byte> bytes,
                                  std::span<uint8_t> into) {
  const size_t width = element_bytes(type);
  const uint64_t one = one_of(type);
  const uint64_t minus_zero = is_float(type) ? uint64_t{1} << (8 * width - 1) : 0;
  for (size_t i = 0; i < into.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    if (bits != 0 && bits != one && bits != minus_zero) return i;
    into[i] = bits == one ? 1 : 0;
  }
  return std::nullopt;
}

void reverse_elements(std::span<std::byte> bytes, size_t element_bytes) {
  for (size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    std::ranges::reverse(bytes.subspan(at, element_bytes));
  }
}

}  // namespace lacuna
