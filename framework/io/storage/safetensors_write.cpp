#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.h"
#include "lacuna/framework/io/storage/safetensors_file.h"
#include "lacuna/framework/io/storage/safetensors_header.hpp"

namespace lacuna {
namespace {

using Named = std::pair<std::string, Tensor>;

// By name: all are of one type, which would come before it.
std::vector<Named> in_order(std::vector<Named> tensors) {
  std::ranges::sort(tensors, {}, &Named::first);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &Named::first);
  if (twice != tensors.end()) throw StateError("'" + twice->first + "' is there twice");
  for (const auto& [name, values] : tensors) {
    if (name == "__metadata__") throw StateError("no tensor can be named '" + name + "'");
    if (!values.defined()) throw StateError("the tensor '" + name + "' is undefined");
  }
  return tensors;
}

std::string header_of(const std::vector<Named>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.tensors = {}, .metadata = metadata};
  uint64_t end = 0;
  for (const auto& [name, values] : tensors) {
    const std::span<const int64_t> sizes = values.shape().sizes();
    const uint64_t begin = end;
    end += static_cast<uint64_t>(values.numel()) * sizeof(float);
    header.tensors.push_back({.name = name,
                              .dtype = "F32",
                              .sizes = {sizes.begin(), sizes.end()},
                              .begin = begin,
                              .end = end});
  }
  std::string text = render_safetensors_header(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the values are aligned
  if (text.size() > kMostHeaderBytes) {
    throw StateError(fmt::format("its header would have {} bytes, and readers take at most {}",
                                 text.size(), kMostHeaderBytes));
  }
  return text;
}

void write_bytes(std::ofstream& stream, const void* bytes, size_t count) {
  stream.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<Named>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<Named> ordered;
  std::string header;
  try {
    ordered = in_order(tensors);
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
  for (const auto& [name, values] : ordered) {
    const Tensor flat = values.to(Order::RowMajor);
    write_bytes(stream, flat.data(), static_cast<size_t>(flat.numel()) * sizeof(float));
  }
  stream.close();
  if (!stream) throw StateError("cannot write '" + path + "': " + std::strerror(errno));
  replacement.flush();
  replacement.commit();
}

}  // namespace lacuna
