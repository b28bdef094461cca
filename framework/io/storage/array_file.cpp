#include "lacuna/framework/io/storage/array_file.hpp"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/npz_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"

namespace lacuna {
namespace {

class SafetensorsArrays final : public ArrayFile {
 public:
  explicit SafetensorsArrays(const std::string& path) : ArrayFile(path), file_(path) {
    for (const SafetensorsEntry& entry : file_.tensors()) {
      arrays_.push_back({.name = entry.name,
                         .type = element_type(entry.dtype),
                         .type_name = entry.dtype,
                         .shape = entry.shape});
    }
  }

 private:
  void read_bytes(size_t index, std::span<std::byte> into) const override {
    file_.read_bytes(file_.tensors()[index], into);
  }

  SafetensorsFile file_;
};

}  // namespace

Tensor ArrayFile::read(size_t index) const {
  const ArrayEntry& entry = arrays_[index];
  if (!is_float(entry.type)) {
    throw DataError(fmt::format("the tensor '{}' in '{}' is {}; expected F32, F64, F16 or BF16",
                                entry.name, path_, entry.type_name));
  }
  Tensor values = Tensor::empty(entry.shape);
  const std::span<float> into(values.mutable_data(), static_cast<size_t>(values.numel()));
  if (entry.type == ElementType::F32) {
    read_bytes(index, std::as_writable_bytes(into));
    return values;
  }
  std::vector<std::byte> bytes(into.size() * element_bytes(entry.type));
  read_bytes(index, bytes);
  if (const auto problem = decode_floats(entry.type, bytes, into)) {
    throw DataError(fmt::format("the tensor '{}' in '{}' {}", entry.name, path_, *problem));
  }
  return values;
}

ByteArray ArrayFile::read_mask(size_t index) const {
  const ArrayEntry& entry = arrays_[index];
  const size_t width = element_bytes(entry.type);
  if (width == 0) {
    throw DataError(
        fmt::format("the mask '{}' in '{}' is {}; expected a type of zeros and ones, as BOOL",
                    entry.name, path_, entry.type_name));
  }
  ByteArray mask{.shape = entry.shape, .values = {}};
  mask.values.resize(static_cast<size_t>(entry.shape.numel()));
  std::vector<std::byte> bytes(mask.values.size() * width);
  read_bytes(index, bytes);
  if (const auto place = decode_mask(entry.type, bytes, mask.values)) {
    throw DataError(fmt::format(
        "the mask '{}' in '{}' has another value than 0 and 1 (its element {}, in row-major order)",
        entry.name, path_, *place));
  }
  return mask;
}

std::vector<int64_t> ArrayFile::read_integers(size_t index) const {
  const ArrayEntry& entry = arrays_[index];
  if (!is_integer(entry.type)) {
    throw DataError(fmt::format("the array '{}' in '{}' is {}; expected integers", entry.name,
                                path_, entry.type_name));
  }
  std::vector<int64_t> values(static_cast<size_t>(entry.shape.numel()));
  std::vector<std::byte> bytes(values.size() * element_bytes(entry.type));
  read_bytes(index, bytes);
  if (const auto place = decode_integers(entry.type, bytes, values)) {
    throw DataError(fmt::format("the array '{}' in '{}' has an integer beyond 63 bits (element {})",
                                entry.name, path_, *place));
  }
  return values;
}

ArrayFormat array_format(const std::string& path) {
  if (path.ends_with(".safetensors")) return ArrayFormat::Safetensors;
  if (path.ends_with(".npz")) return ArrayFormat::Npz;
  return path.ends_with(".npy") ? ArrayFormat::Npy : ArrayFormat::None;
}

std::unique_ptr<ArrayFile> open_array_file(const std::string& path) {
  switch (array_format(path)) {
    case ArrayFormat::Safetensors:
      return std::make_unique<SafetensorsArrays>(path);
    case ArrayFormat::Npz:
      return open_npz(path);
    case ArrayFormat::Npy:
      return open_npy(path);
    case ArrayFormat::None:
      break;
  }
  throw DataError("'" + path + "' is named as none of .safetensors, .npz and .npy");
}

}  // namespace lacuna
