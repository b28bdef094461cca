#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"

namespace lacuna {
namespace {

// A value as NumPy has it; the bytes belong to the value.
struct NpyParts {
  std::string header;
  std::span<const std::byte> values;
};

NpyParts parts_of(const Tensor& row_major) {
  const std::span values(row_major.data(), static_cast<size_t>(row_major.numel()));
  return {render_npy_header("<f4", row_major.shape().sizes()), std::as_bytes(values)};
}

NpyParts parts_of(const ByteArray& mask) {
  return {render_npy_header("|b1", mask.shape.sizes()), std::as_bytes(std::span(mask.values))};
}

NpyParts parts_of(const SignedBytes& bytes) {
  return {render_npy_header("|i1", bytes.shape.sizes()), std::as_bytes(std::span(bytes.values))};
}

template <class T>
NpyParts parts_of(const std::vector<T>& integers) {
  const auto count = static_cast<int64_t>(integers.size());
  return {render_npy_header(sizeof(T) == 4 ? "<i4" : "<i8", {&count, 1}),
          std::as_bytes(std::span(integers))};
}

void require_writable(const std::vector<NamedArray>& arrays) {
  std::set<std::string> names;
  for (const auto& [name, value] : arrays) {
    if (name.empty() || name.size() > 0xff00) throw StateError("a name is empty or too long");
    if (!names.insert(name).second) throw StateError("'" + name + "' appears twice");
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor != nullptr && !tensor->defined()) {
      throw StateError("the array '" + name + "' is undefined");
    }
  }
}

void write_members(std::ostream& stream, const std::vector<NamedArray>& arrays) {
  ZipWriter writer(stream);
  for (const auto& [name, value] : arrays) {
    const auto* tensor = std::get_if<Tensor>(&value);
    const Tensor flat = tensor == nullptr ? Tensor() : tensor->to(Order::RowMajor);
    const NpyParts parts =
        tensor != nullptr
            ? parts_of(flat)
            : std::visit([](const auto& held) -> NpyParts { return parts_of(held); }, value);
    const std::span<const std::byte> both[] = {std::as_bytes(std::span(parts.header)),
                                               parts.values};
    writer.add(name + ".npy", both);
  }
  writer.finish();
}

}  // namespace

void write_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  try {
    require_writable(arrays);
  } catch (const StateError& error) {
    throw StateError("cannot write '" + path + "': " + error.what());
  }
  FileReplacement replacement(path);
  errno = 0;
  std::ofstream stream(replacement.temporary_path(), std::ios::binary | std::ios::trunc);
  write_members(stream, arrays);
  stream.close();
  if (!stream) throw StateError("cannot write '" + path + "': " + std::strerror(errno));
  replacement.flush();
  replacement.commit();
}

}  // namespace lacuna
