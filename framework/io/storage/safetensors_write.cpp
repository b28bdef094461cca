#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/storage/safetensors_header.hpp"

namespace lacuna {
namespace {

// An array as the file has it.
struct Piece {
  std::string name;
  std::string_view dtype;
  int rank_of_type;  // larger comes first in the file
  std::vector<uint64_t> sizes;
  uint64_t bytes;
  const NamedArray* array;
};

Piece piece_of(const NamedArray& array) {
  Piece piece{
      .name = array.name, .dtype = {}, .rank_of_type = 0, .sizes = {}, .bytes = 0, .array = &array};
  const auto set = [&](std::string_view dtype, int rank, std::span<const int64_t> sizes,
                       size_t width) {
    piece.dtype = dtype;
    piece.rank_of_type = rank;
    piece.bytes = width;
    for (const int64_t size : sizes) {
      piece.sizes.push_back(static_cast<uint64_t>(size));
      piece.bytes *= static_cast<uint64_t>(size);
    }
  };
  if (const auto* tensor = std::get_if<Tensor>(&array.value)) {
    if (!tensor->defined()) throw StateError("the tensor '" + array.name + "' is undefined");
    set("F32", 3, tensor->shape().sizes(), 4);
  } else if (const auto* mask = std::get_if<ByteArray>(&array.value)) {
    set("BOOL", 0, mask->shape.sizes(), 1);
  } else if (const auto* bytes = std::get_if<SignedBytes>(&array.value)) {
    set("I8", 1, bytes->shape.sizes(), 1);
  } else if (const auto* narrow = std::get_if<std::vector<int32_t>>(&array.value)) {
    const auto count = static_cast<int64_t>(narrow->size());
    set("I32", 2, {&count, 1}, 4);
  } else {
    const auto count = static_cast<int64_t>(std::get<std::vector<int64_t>>(array.value).size());
    set("I64", 4, {&count, 1}, 8);
  }
  return piece;
}

// By type, the one that comes last in the format's list of them first, and by name.
std::vector<Piece> in_order(const std::vector<NamedArray>& arrays) {
  std::vector<Piece> pieces;
  for (const NamedArray& array : arrays) pieces.push_back(piece_of(array));
  std::ranges::sort(pieces, {}, &Piece::name);
  const auto twice = std::ranges::adjacent_find(pieces, {}, &Piece::name);
  if (twice != pieces.end()) throw StateError("'" + twice->name + "' appears twice");
  for (const Piece& piece : pieces) {
    if (piece.name == "__metadata__") {
      throw StateError("no tensor can be named '" + piece.name + "'");
    }
  }
  std::ranges::stable_sort(pieces, std::greater<>(), &Piece::rank_of_type);
  return pieces;
}

std::string header_of(const std::vector<Piece>& pieces,
                      const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.tensors = {}, .metadata = metadata};
  uint64_t end = 0;
  for (const Piece& piece : pieces) {
    const uint64_t begin = end;
    end += piece.bytes;
    header.tensors.push_back({.name = piece.name,
                              .dtype = std::string(piece.dtype),
                              .sizes = piece.sizes,
                              .begin = begin,
                              .end = end});
  }
  std::string text = render_safetensors_header(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the values are aligned
  if (text.size() > kMostHeaderBytes) {
    throw StateError(fmt::format("its header would have {} bytes; readers accept at most {}",
                                 text.size(), kMostHeaderBytes));
  }
  return text;
}

void write_bytes(std::ofstream& stream, const void* bytes, size_t count) {
  stream.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
}

void write_values(std::ofstream& stream, const NamedArray& array) {
  if (const auto* tensor = std::get_if<Tensor>(&array.value)) {
    const Tensor flat = tensor->to(Order::RowMajor);
    return write_bytes(stream, flat.data(), static_cast<size_t>(flat.numel()) * sizeof(float));
  }
  if (const auto* mask = std::get_if<ByteArray>(&array.value)) {
    return write_bytes(stream, mask->values.data(), mask->values.size());
  }
  if (const auto* signed_bytes = std::get_if<SignedBytes>(&array.value)) {
    return write_bytes(stream, signed_bytes->values.data(), signed_bytes->values.size());
  }
  if (const auto* narrow = std::get_if<std::vector<int32_t>>(&array.value)) {
    return write_bytes(stream, narrow->data(), narrow->size() * sizeof(int32_t));
  }
  const auto& wide = std::get<std::vector<int64_t>>(array.value);
  write_bytes(stream, wide.data(), wide.size() * sizeof(int64_t));
}

}  // namespace

void write_safetensors_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<Piece> ordered;
  std::string header;
  try {
    ordered = in_order(arrays);
    header = header_of(ordered, metadata);
  } catch (const StateError& error) {
    throw StateError("cannot write '" + path + "': " + error.what());
  }
  FileReplacement replacement(path);
  errno = 0;
  std::ofstream stream(replacement.temporary_path(), std::ios::binary | std::ios::trunc);
  const uint64_t length = header.size();
  write_bytes(stream, &length, sizeof length);
  write_bytes(stream, header.data(), header.size());
  for (const Piece& piece : ordered) write_values(stream, *piece.array);
  stream.close();
  if (!stream) throw StateError("cannot write '" + path + "': " + std::strerror(errno));
  replacement.flush();
  replacement.commit();
}

void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<NamedArray> arrays;
  for (const auto& [name, values] : tensors) arrays.push_back({name, values});
  write_safetensors_arrays(path, arrays, metadata);
}

}  // namespace lacuna
