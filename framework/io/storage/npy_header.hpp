// The header in front of an array in NumPy's .npy format: between its text and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/io/storage/element_type.hpp"

namespace lacuna {

struct NpyHeader {
  std::string descr;  ///< as NumPy spells the type: "<f4"
  ElementType type = ElementType::Other;
  size_t width = 0;       ///< bytes of an element, of Other too
  size_t character = 0;   ///< of text: bytes of a character, 1 or 4; 0: it is none
  std::string type_name;  ///< as messages call it: "F32", "complex64 ('<c8')"
  bool is_big_endian = false;
  bool is_fortran = false;  ///< the first index runs fastest
  Shape shape;
  size_t length = 0;  ///< bytes before the values

  /// Of the values, in the file.
  uint64_t data_bytes() const { return static_cast<uint64_t>(shape.numel()) * width; }
};

/// What makes a whole file useless here although nothing is damaged: arrays of Python objects,
/// whose values are a pickle, or of records, and archives of PyTorch's.
class UnreadElements : public DataError {
 public:
  using DataError::DataError;
};

/// Bytes that must be at hand to know how long a header is.
inline constexpr size_t kNpyPreamble = 12;
/// The longest header that is read: NumPy's own are 128 bytes, some of long shapes more.
inline constexpr size_t kMostNpyHeader = size_t{1} << 16;

/// Length of a header in all, from its first kNpyPreamble bytes (fewer where the file ends).
/// *Errors:* DataError, without the file's name, when it does not begin as one, is of a version
/// other than 1, 2 and 3, or is longer than kMostNpyHeader.
size_t npy_header_length(std::span<const std::byte> beginning);

/// Reads a whole header: a Python dictionary of `descr`, `fortran_order` and `shape`, each once and
/// nothing else. Types of NumPy's that no weight has (complex numbers, texts, times, raw bytes,
/// floats of more than 8 bytes) are Other. *Errors:* DataError, without the file's name, when it is
/// anything else, when the type is none of NumPy's, and when the shape has more than
/// Shape::kMaxRank sizes or more elements than can be counted; UnreadElements.
NpyHeader parse_npy_header(std::span<const std::byte> header);

/// The header of version 1 of a row-major, little-endian array, padded to a multiple of 64 bytes.
std::string render_npy_header(const std::string& descr, std::span<const int64_t> sizes);

}  // namespace lacuna
