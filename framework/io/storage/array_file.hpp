// ArrayFile: named arrays in a file of another tool, whichever of the formats it is in:
// safetensors (in one file or several with an index), lacuna's own ONNX models, NumPy's npz (and
// npy, which holds one). Models and their names are not known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/storage/element_type.hpp"

namespace lacuna {

/// An array in a file.
struct ArrayEntry {
  std::string name;
  ElementType type = ElementType::Other;
  std::string type_name;  ///< as messages call it: "F32", "F8_E4M3", "complex64 ('<c8')"
  Shape shape;
  size_t width = 0;      ///< bytes of an element, where NumPy has written it
  size_t character = 0;  ///< of text (Other): bytes of a character, 1 or 4 (UTF-32); 0: it is none
};

/// A file whose headers have been found good. Arrays are read one by one.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<ArrayEntry>& arrays() const { return arrays_; }
  /// The texts that safetensors and ONNX files have next to arrays; none of an index and of npz.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The values of an array, converted to float32 (`decode_floats`). *Errors:* DataError when it is
  /// of another type than `is_float` names, when it has a finite value beyond float32's range, or
  /// what is in the file is damaged. *Cost:* reads this array alone; during a conversion, its bytes
  /// are in memory as well.
  Tensor read(size_t index) const;
  /// An array of zeros and ones, of whatever type. *Errors:* DataError, at another value too.
  ByteArray read_mask(size_t index) const;
  /// An array of U8. *Errors:* DataError when its elements are others.
  std::vector<uint8_t> read_uint8(size_t index) const;
  /// An array of text in UTF-8: UTF-32 is converted, bytes are as they are, without the zeros at
  /// their end. *Errors:* DataError when its elements are others, and on what is no character.
  std::vector<std::string> read_texts(size_t index) const;
  /// The elements of an array of integers. *Errors:* DataError when they are others, or do not fit.
  std::vector<int64_t> read_integers(size_t index) const;

 protected:
  explicit ArrayFile(std::string path) : path_(std::move(path)) {}
  /// The elements as they are in a row-major, little-endian array. *Requires* that `into` has the
  /// array's bytes.
  virtual void read_bytes(size_t index, std::span<std::byte> into) const = 0;

  std::string path_;
  std::vector<ArrayEntry> arrays_;
  std::map<std::string, std::string> metadata_;
};

/// The format by a file's name, and for .onnx by its first bytes.
enum class ArrayFormat {
  None,
  Safetensors,
  SafetensorsIndex,  ///< of several safetensors files next to it: ….safetensors.index.json
  Npz,
  Npy,
  Onnx  ///< that lacuna has written
};
ArrayFormat array_format(const std::string& path);

/// Opens a file of one of the formats; of an index all files that it names, each of whose tensors
/// must be in the one that the index names. *Errors:* DataError with the path when it is missing,
/// unreadable, damaged, or its name tells none of the formats. *Cost:* O(headers).
std::unique_ptr<ArrayFile> open_array_file(const std::string& path);

/// Something to write: values as F32, a mask as BOOL (NumPy's b1), integers as I8, I32 or I64.
struct NamedArray {
  std::string name;
  std::variant<Tensor, ByteArray, SignedBytes, std::vector<int32_t>, std::vector<int64_t>> value;
};

/// Writes an .npz file, whole or not at all: members stored, each with a header of version 1 whose
/// length is a multiple of 64 bytes, in the order given. *Errors:* StateError with path and reason.
void write_npz(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace lacuna
