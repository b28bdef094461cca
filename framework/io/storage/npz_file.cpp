#include "lacuna/framework/io/storage/npz_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kEnding = ".npy";

[[noreturn]] void fail(const std::string& path, const char* kind, const std::string& problem) {
  throw DataError(fmt::format("'{}' is not a valid {} file: {}; download or write it again", path,
                              kind, problem));
}

// For an undamaged file with unusable contents.
[[noreturn]] void refuse(const std::string& path, const UnreadElements& problem) {
  throw DataError(fmt::format("'{}' cannot be used: {}", path, problem.what()));
}

struct OpenedFile {
  std::ifstream stream;
  uint64_t bytes = 0;
};

OpenedFile open_file(const std::string& path) {
  const std::string other = why_no_file(path);
  if (!other.empty()) throw DataError(fmt::format("'{}' {}", path, other));
  std::error_code error;
  OpenedFile file;
  file.bytes = std::filesystem::file_size(path, error);  // fails on a folder, too
  if (error) throw DataError(fmt::format("cannot read '{}': {}", path, error.message()));
  errno = 0;
  file.stream.open(path, std::ios::binary);
  if (!file.stream)
    throw DataError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return file;
}

// From the order in which the first index runs fastest to row-major: the rows of the result are
// walked in order, and each element is fetched from where it lies.
void from_fortran(const Shape& shape, size_t width, std::span<std::byte> bytes) {
  if (shape.rank() < 2 || bytes.empty()) return;
  const std::vector<std::byte> stored(bytes.begin(), bytes.end());
  const auto rank = static_cast<size_t>(shape.rank());
  std::vector<size_t> sizes, strides, index(rank, 0);
  size_t stride = width;
  for (const int64_t size : shape.sizes()) {
    sizes.push_back(static_cast<size_t>(size));
    strides.push_back(stride);
    stride *= sizes.back();
  }
  size_t from = 0;
  for (size_t into = 0; into < bytes.size(); into += width) {
    std::memcpy(bytes.data() + into, stored.data() + from, width);
    for (size_t d = rank; d-- > 0;) {
      from += strides[d];
      if (++index[d] < sizes[d]) break;
      from -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

// Elements as they lie in the file, made row-major and little-endian.
void put_in_order(const NpyHeader& header, std::span<std::byte> bytes) {
  const size_t width = header.width;
  if (header.is_big_endian) {
    reverse_elements(bytes, header.character > 0 ? header.character : width);
  }
  if (header.is_fortran) from_fortran(header.shape, width, bytes);
}

ArrayEntry entry_of(std::string name, const NpyHeader& header) {
  return {.name = std::move(name),
          .type = header.type,
          .type_name = header.type_name,
          .shape = header.shape,
          .width = header.width,
          .character = header.character};
}

class NpzArrays final : public ArrayFile {
 public:
  explicit NpzArrays(const std::string& path) : ArrayFile(path) {
    OpenedFile file = open_file(path);
    try {
      members_ = read_zip_directory(file.stream, file.bytes);
      for (const ZipMember& member : members_) add(file.stream, member);
    } catch (const UnreadElements& problem) {
      refuse(path, problem);
    } catch (const DataError& problem) {
      fail(path, "npz", problem.what());
    }
  }

 private:
  void add(std::istream& stream, const ZipMember& member) {
    if (!member.name.ends_with(kEnding) || member.name.size() == kEnding.size()) {
      if (member.name.ends_with("data.pkl")) {
        throw UnreadElements(fmt::format(
            "'{}' in it is not an array: this is a PyTorch file, a pickle", member.name));
      }
      throw DataError(fmt::format("'{}' in it is not an array (NAME.npy)", member.name));
    }
    try {
      const auto beginning = peek_zip_member(stream, member, kNpyPreamble);
      const size_t length = npy_header_length(beginning);
      const auto whole = peek_zip_member(stream, member, length);
      if (whole.size() < length) throw DataError("its header is cut off");
      const NpyHeader header = parse_npy_header(whole);
      if (header.data_bytes() != member.bytes - length) {
        throw DataError(fmt::format("its shape {} of {} takes {} bytes, and it has {}",
                                    header.shape.to_string(), header.descr, header.data_bytes(),
                                    member.bytes - length));
      }
      headers_.push_back(header);
    } catch (const UnreadElements& problem) {
      throw UnreadElements(fmt::format("the array '{}': {}", member.name, problem.what()));
    } catch (const DataError& problem) {
      throw DataError(fmt::format("the array '{}': {}", member.name, problem.what()));
    }
    arrays_.push_back(
        entry_of(member.name.substr(0, member.name.size() - kEnding.size()), headers_.back()));
  }

  void read_bytes(size_t index, std::span<std::byte> into) const override {
    const NpyHeader& header = headers_[index];
    const ZipMember& member = members_[index];
    OpenedFile file = open_file(path_);
    try {
      std::vector<std::byte> whole(member.bytes);
      read_zip_member(file.stream, member, whole);
      // What was read before the checksum was known must be what the checksum is of.
      const NpyHeader again = parse_npy_header(std::span(whole).first(header.length));
      if (again.descr != header.descr || again.shape != header.shape) {
        throw DataError("its header has changed");
      }
      std::copy(whole.begin() + static_cast<std::ptrdiff_t>(header.length), whole.end(),
                into.begin());
    } catch (const DataError& problem) {
      fail(path_, "npz", problem.what());
    }
    put_in_order(header, into);
  }

  std::vector<ZipMember> members_;  // as arrays_
  std::vector<NpyHeader> headers_;
};

class NpyArray final : public ArrayFile {
 public:
  explicit NpyArray(const std::string& path) : ArrayFile(path) {
    OpenedFile file = open_file(path);
    try {
      const auto beginning = read(file, std::min<uint64_t>(file.bytes, kNpyPreamble));
      const size_t length = npy_header_length(beginning);
      if (length > file.bytes) throw DataError("its header is cut off");
      header_ = parse_npy_header(read(file, length));
      if (header_.data_bytes() != file.bytes - length) {
        throw DataError(fmt::format("its shape {} of {} takes {} bytes, and it has {}",
                                    header_.shape.to_string(), header_.descr, header_.data_bytes(),
                                    file.bytes - length));
      }
    } catch (const UnreadElements& problem) {
      refuse(path, problem);
    } catch (const DataError& problem) {
      fail(path, "npy", problem.what());
    }
    arrays_.push_back(entry_of(std::filesystem::path(path).stem().string(), header_));
  }

 private:
  static std::vector<std::byte> read(OpenedFile& file, uint64_t count) {
    std::vector<std::byte> bytes(count);
    file.stream.clear();
    file.stream.seekg(0);
    if (!file.stream.read(reinterpret_cast<char*>(bytes.data()),
                          static_cast<std::streamsize>(count))) {
      throw DataError("it cannot be read");
    }
    return bytes;
  }

  void read_bytes(size_t, std::span<std::byte> into) const override {
    OpenedFile file = open_file(path_);
    file.stream.seekg(static_cast<std::streamoff>(header_.length));
    if (!file.stream.read(reinterpret_cast<char*>(into.data()),
                          static_cast<std::streamsize>(into.size()))) {
      fail(path_, "npy", "it became shorter while it was read");
    }
    put_in_order(header_, into);
  }

  NpyHeader header_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_npz(const std::string& path) {
  return std::make_unique<NpzArrays>(path);
}

std::unique_ptr<ArrayFile> open_npy(const std::string& path) {
  return std::make_unique<NpyArray>(path);
}

}  // namespace lacuna
