// Types of the elements in files of others, and the way from their bytes to float32 and to masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lacuna {

/// What an array's elements are. Other: a type that is never read here.
enum class ElementType { Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, Other };

/// As safetensors spells it: "F32", "BOOL"; "other".
std::string_view to_string(ElementType type);
/// The type that safetensors calls so; Other where it is none of those above.
ElementType element_type(std::string_view safetensors_name);
/// Bytes of an element; 0 of Other.
size_t element_bytes(ElementType type);
/// Whether `decode_floats` takes it: F32, and F64, F16 and BF16, which are converted.
bool is_float(ElementType type);
bool is_integer(ElementType type);

/// Converts elements, little-endian, to float32: F16 and BF16 exactly, F64 to the nearest, which is
/// infinite beyond float32's range. Returns a warning on the first finite F64 beyond it
/// ("has the value 1e+40 (…)…"), or nothing. *Requires* a type of `is_float`, and as many bytes as
/// `into` takes.
std::optional<std::string> decode_floats(ElementType type, std::span<const std::byte> bytes,
                                         std::span<float> into);

/// Reads integers of any size. Returns the index of the first that does not fit in 64 bits with a
/// sign, or nothing. *Requires* a type of `is_integer`, and as many bytes as `into` takes.
std::optional<size_t> decode_integers(ElementType type, std::span<const std::byte> bytes,
                                      std::span<int64_t> into);

/// Reads elements as a mask: each is 0 or 1, whatever its type. Returns the index of the first that
/// is neither, or nothing. *Requires* as many bytes as `into` takes, and a type other than Other.
std::optional<size_t> decode_mask(ElementType type, std::span<const std::byte> bytes,
                                  std::span<uint8_t> into);

/// Turns the bytes of each element round: big-endian to little-endian.
void reverse_elements(std::span<std::byte> bytes, size_t element_bytes);

}  // namespace lacuna
