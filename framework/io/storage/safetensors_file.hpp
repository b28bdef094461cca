// SafetensorsFile: named arrays in a file of Hugging Face's safetensors format, read one by one,
// and written. Models and their names are not known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/io/storage/array_file.hpp"

namespace lacuna {

/// A tensor in a file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< as the format spells it: "F32", "I64"
  Shape shape;
  int64_t begin = 0;  ///< of its bytes in the file
  int64_t bytes = 0;

  /// Whether `read` can give it: F32, and F64, F16 and BF16, which are converted.
  bool is_float() const;
};

/// A file whose header has been found good: every byte behind it belongs to one tensor.
///
/// *Source:* huggingface/safetensors, README and tensor.rs, all of whose checks are made, and three
/// more: a name that is there twice, a key that the format does not have, and more than
/// Shape::kMaxRank dimensions are refused. Values may be anything, NaN included.
class SafetensorsFile {
 public:
  /// Reads the header. *Errors:* DataError with the path when the file is missing, unreadable, no
  /// safetensors file, or damaged. *Cost:* O(header).
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  /// In the order of their bytes in the file.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  /// The tensor of that name. *Errors:* DataError with the nearest name.
  const SafetensorsEntry& tensor(std::string_view name) const;
  /// What the header holds as "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The values of one of `tensors()`. *Errors:* DataError when it is of another type than
  /// `is_float` names, or the file has become shorter. *Cost:* reads its bytes alone.
  Tensor read(const SafetensorsEntry& entry) const;
  /// Its bytes as they are, of whatever type. *Requires* room for `entry.bytes`. *Errors:*
  /// DataError when the file has become shorter.
  void read_bytes(const SafetensorsEntry& entry, std::span<std::byte> into) const;

 private:
  [[noreturn]] void fail(const std::string& problem) const;

  std::string path_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// What readers of PyTorch expect in the header.
inline const std::map<std::string, std::string> kPlainMetadata{{"format", "pt"}};

/// Writes arrays as F32 (masks as BOOL, integers as I32 and I64), in the order and with the padding
/// that the format's own library writes, whole or not at all (FileReplacement). *Errors:*
/// StateError with path and reason: the system's error, a name that is there twice, reserved or
/// not UTF-8, a header that readers would refuse.
void write_safetensors_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                              const std::map<std::string, std::string>& metadata = kPlainMetadata);
/// The same for tensors only.
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = kPlainMetadata);

}  // namespace lacuna
