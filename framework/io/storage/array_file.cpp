#include "lacuna/framework/io/storage/array_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/npz_file.hpp"
#include "lacuna/framework/io/storage/onnx_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/storage/safetensors_index.hpp"

namespace lacuna {
namespace {

// Appends a character in UTF-8, or returns false if it is not a character.
bool append_utf8(uint32_t character, std::string& text) {
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return false;
  if (character < 0x80) {
    text += static_cast<char>(character);
    return true;
  }
  const int following = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  const uint32_t mark = 0xff00u >> (following + 1) & 0xffu;  // as many ones as bytes
  text += static_cast<char>(mark | character >> 6 * following);
  for (int i = following - 1; i >= 0; --i) {
    text += static_cast<char>(0x80u | (character >> 6 * i & 0x3fu));
  }
  return true;
}

constexpr std::string_view kIndexEnding = ".safetensors.index.json";

ArrayEntry array_of(const SafetensorsEntry& entry) {
  return {.name = entry.name,
          .type = element_type(entry.dtype),
          .type_name = entry.dtype,
          .shape = entry.shape};
}

class SafetensorsArrays final : public ArrayFile {
 public:
  explicit SafetensorsArrays(const std::string& path) : ArrayFile(path), file_(path) {
    for (const SafetensorsEntry& entry : file_.tensors()) arrays_.push_back(array_of(entry));
    metadata_ = file_.metadata();
  }

 private:
  void read_bytes(size_t index, std::span<std::byte> into) const override {
    file_.read_bytes(file_.tensors()[index], into);
  }

  SafetensorsFile file_;
};

// A small file, whole.
std::string read_index(const std::string& path) {
  const std::string other = why_no_file(path);
  if (!other.empty()) throw DataError(fmt::format("'{}' {}", path, other));
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);  // fails on a folder, too
  if (error) throw DataError(fmt::format("cannot read '{}': {}", path, error.message()));
  if (size > kMostIndexBytes) {
    throw DataError(fmt::format("'{}' has {} bytes; the limit for an index is {}", path, size,
                                kMostIndexBytes));
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string text(size, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(size))) {
    throw DataError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return text;
}

// Tensors of several files, in the order of the files' names.
class ShardedArrays final : public ArrayFile {
 public:
  explicit ShardedArrays(const std::string& path) : ArrayFile(path) {
    std::map<std::string, std::string> file_of;
    try {
      file_of = parse_safetensors_index(read_index(path));
    } catch (const DataError& problem) {
      if (std::string_view(problem.what()).find(path) != std::string_view::npos) throw;
      fail(problem.what());
    }
    std::set<std::string> files;
    for (const auto& [tensor, file] : file_of) files.insert(file);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const std::string& file : files) open((folder / file).string(), file, file_of);
    if (file_of.empty()) return;
    const auto& [tensor, file] = *file_of.begin();
    fail(fmt::format(
        "the tensor '{}' is not in '{}'{}", printable(tensor), file,
        file_of.size() == 1
            ? ""
            : fmt::format(", nor are {} more where the index lists them", file_of.size() - 1)));
  }

 private:
  // Takes the file's tensors out of those that are looked for.
  void open(const std::string& path, const std::string& name,
            std::map<std::string, std::string>& file_of) {
    const SafetensorsFile& shard = shards_.emplace_back(path);
    for (size_t i = 0; i < shard.tensors().size(); ++i) {
      const SafetensorsEntry& entry = shard.tensors()[i];
      const auto found = file_of.find(entry.name);
      if (found == file_of.end() || found->second != name) {
        fail(fmt::format(
            "the tensor '{}' is in '{}', but the index lists it {}", entry.name, name,
            found == file_of.end() ? "nowhere, or in two files" : "in '" + found->second + "'"));
      }
      file_of.erase(found);
      places_.push_back({shards_.size() - 1, i});
      arrays_.push_back(array_of(entry));
    }
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError("'" + path_ + "' is not an index of safetensors files, or is damaged: " +
                    problem + "; download or write it again, with all its files");
  }

  void read_bytes(size_t index, std::span<std::byte> into) const override {
    const Place& place = places_[index];
    const SafetensorsFile& shard = shards_[place.shard];
    shard.read_bytes(shard.tensors()[place.tensor], into);
  }

  struct Place {
    size_t shard, tensor;
  };
  std::vector<SafetensorsFile> shards_;
  std::vector<Place> places_;  // of arrays_
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
        "the mask '{}' in '{}' has a value other than 0 and 1 (its element {}, in row-major order)",
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

std::vector<uint8_t> ArrayFile::read_uint8(size_t index) const {
  const ArrayEntry& entry = arrays_[index];
  if (entry.type != ElementType::U8) {
    throw DataError(fmt::format("the array '{}' in '{}' is {}; expected U8", entry.name, path_,
                                entry.type_name));
  }
  std::vector<uint8_t> values(static_cast<size_t>(entry.shape.numel()));
  read_bytes(index, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::string> ArrayFile::read_texts(size_t index) const {
  const ArrayEntry& entry = arrays_[index];
  if (entry.character == 0) {
    throw DataError(fmt::format("the array '{}' in '{}' is {}; expected text", entry.name, path_,
                                entry.type_name));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(entry.shape.numel()) * entry.width);
  read_bytes(index, bytes);
  std::vector<std::string> texts(static_cast<size_t>(entry.shape.numel()));
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const std::byte> text = std::span(bytes).subspan(i * entry.width, entry.width);
    for (size_t at = 0; at < text.size(); at += entry.character) {
      uint32_t character = 0;
      std::memcpy(&character, text.data() + at, entry.character);
      const bool is_character = entry.character == 1 || append_utf8(character, texts[i]);
      if (entry.character == 1) texts[i] += static_cast<char>(character);
      if (is_character) continue;
      throw DataError(
          fmt::format("the array '{}' in '{}' has no text at element {}", entry.name, path_, i));
    }
    texts[i].resize(texts[i].find_last_not_of('\0') + 1);
  }
  return texts;
}

ArrayFormat array_format(const std::string& path) {
  if (path.ends_with(".safetensors")) return ArrayFormat::Safetensors;
  if (path.ends_with(kIndexEnding)) return ArrayFormat::SafetensorsIndex;
  if (path.ends_with(".npz")) return ArrayFormat::Npz;
  if (path.ends_with(".onnx") && is_own_onnx(path)) return ArrayFormat::Onnx;
  return path.ends_with(".npy") ? ArrayFormat::Npy : ArrayFormat::None;
}

std::unique_ptr<ArrayFile> open_array_file(const std::string& path) {
  switch (array_format(path)) {
    case ArrayFormat::Safetensors:
      return std::make_unique<SafetensorsArrays>(path);
    case ArrayFormat::SafetensorsIndex:
      return std::make_unique<ShardedArrays>(path);
    case ArrayFormat::Npz:
      return open_npz(path);
    case ArrayFormat::Npy:
      return open_npy(path);
    case ArrayFormat::Onnx:
      return open_onnx(path);
    case ArrayFormat::None:
      break;
  }
  throw DataError(
      "'" + path +
      "' is not a .safetensors, .safetensors.index.json, .npz or .npy file, or an .onnx "
      "file that lacuna wrote");
}

}  // namespace lacuna
