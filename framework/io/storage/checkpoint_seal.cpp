#include "lacuna/framework/io/storage/checkpoint_seal.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/storage/foreign_model.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kMagic = "lacuna checkpoint\nformat ";
constexpr size_t kBlock = size_t{1} << 18;

struct Seal {
  int64_t format = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;
};

// The header, in the only form that is accepted, so that no byte of it can change unnoticed. Its
// text is a part of the format: the page that it names is docs/reference/checkpoint.md now.
std::string render(const Seal& seal) {
  std::string text = fmt::format(
      "{}{}\nbytes {:020}\ncrc32 {:08x}\n"
      "HDF5 from byte 512 on: open this file with h5py or h5dump. See docs/checkpoint.md.\n",
      kMagic, seal.format, seal.bytes, seal.crc);
  text.resize(static_cast<size_t>(kSealBytes), '\0');
  return text;
}

// The number between `before` and the line's end.
std::optional<uint64_t> field(std::string_view text, std::string_view before, int base) {
  const size_t found = text.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  text.remove_prefix(found + before.size());
  text = text.substr(0, text.find('\n'));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void fail(int error) { throw std::system_error(error, std::generic_category()); }

// An open file. *Errors:* std::system_error, to which callers add what could not be done.
class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(errno);
    struct stat facts {};
    const int error = ::fstat(descriptor_, &facts) != 0 ? errno
                      : S_ISDIR(facts.st_mode)          ? EISDIR
                                                        : 0;
    if (error != 0) {
      ::close(descriptor_);
      fail(error);
    }
    size_ = facts.st_size;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }

  int64_t size() const { return size_; }

  // The bytes from `offset` on, at most a block; none at the end.
  std::string_view read(int64_t offset, std::vector<char>& block) const {
    for (;;) {
      const ssize_t count = ::pread(descriptor_, block.data(), block.size(), offset);
      if (count >= 0) return {block.data(), static_cast<size_t>(count)};
      if (errno != EINTR) fail(errno);
    }
  }

  // To the beginning of the file.
  void write(std::string_view text) const {
    for (off_t offset = 0; !text.empty();) {
      const ssize_t count = ::pwrite(descriptor_, text.data(), text.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail(count < 0 ? errno : ENOSPC);
      text.remove_prefix(static_cast<size_t>(count));
      offset += count;
    }
  }

 private:
  int descriptor_;
  int64_t size_ = 0;
};

// Of the whole file, with the header as it is when the checksum in it is zero.
uint32_t checksum(const File& file, Seal seal) {
  seal.crc = 0;
  const std::string header = render(seal);
  uLong crc =
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(header.data()), header.size());
  std::vector<char> block(kBlock);
  int64_t offset = kSealBytes;
  for (;;) {
    const std::string_view bytes = file.read(offset, block);
    if (bytes.empty()) return static_cast<uint32_t>(crc);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    offset += static_cast<int64_t>(bytes.size());
  }
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw CheckpointError("'" + path + "' " + reason);
}

// A zip file (PyTorch's, npz), a pickle, an npy, or a safetensors file, by its first bytes.
bool is_of_another_tool(std::string_view header) {
  return header.starts_with("PK\x03\x04") || header.starts_with("\x80") ||
         header.starts_with("\x93NUMPY") || (header.size() > 8 && header[8] == '{');
}

void require_known_format(const std::string& path, std::string_view header, int64_t newest) {
  if (header.empty()) refuse(path, "is not a checkpoint: it is empty");
  const size_t length = std::min(header.size(), kMagic.size());
  const bool is_ours = header.substr(0, length) == kMagic.substr(0, length);
  if (!is_ours) {
    if (const std::string words = foreign_model(path, header); !words.empty()) refuse(path, words);
  }
  if (header.starts_with(kHdf5Signature)) {
    refuse(path,
           "is an HDF5 file, but not a lacuna checkpoint: its header is missing; save arrays of "
           "another tool as .safetensors or .npz, then `lacuna import FILE --config CONFIG --out "
           "RUN`");
  }
  if (!is_ours) {
    if (is_of_another_tool(header)) {
      refuse(path,
             "holds weights of another tool, not a lacuna checkpoint: `lacuna import FILE --config "
             "CONFIG --out RUN` makes a run of them, or prints how to convert them; FILE must end "
             "in .safetensors, .npz, .npy, .pt or .pth");
    }
    refuse(path,
           "is not a checkpoint, or is damaged: it does not begin with 'lacuna checkpoint'; "
           "weights of other tools end in .safetensors, .npz or .npy, and `lacuna import` makes a "
           "run of them");
  }
  if (header.size() < static_cast<size_t>(kSealBytes)) {
    refuse(path, fmt::format("is cut off: expected a header of {} bytes, found {} bytes in all",
                             kSealBytes, header.size()));
  }
  const std::optional<uint64_t> format = field(header, "\nformat ", 10);
  if (!format || *format == 0) refuse(path, "is damaged: its header names no format");
  if (*format > static_cast<uint64_t>(newest)) {
    refuse(
        path,
        fmt::format(
            "was written in format {}, but this version of lacuna reads up to {}: use a newer one",
            *format, newest));
  }
}

void verify(const std::string& path, int64_t newest_format) {
  if (const std::string reason = why_no_file(path); !reason.empty()) refuse(path, reason);
  const File file(path, O_RDONLY);
  std::vector<char> block(static_cast<size_t>(kSealBytes));
  const std::string header(file.read(0, block));
  require_known_format(path, header, newest_format);
  const auto format = field(header, "\nformat ", 10), bytes = field(header, "\nbytes ", 10),
             crc = field(header, "\ncrc32 ", 16);
  if (!bytes || !crc) refuse(path, "is damaged: its header names no length or no checksum");
  if (*bytes != static_cast<uint64_t>(file.size())) {
    refuse(path,
           fmt::format("is cut off or damaged: expected {} bytes, found {}", *bytes, file.size()));
  }
  const Seal seal{static_cast<int64_t>(*format), static_cast<int64_t>(*bytes),
                  static_cast<uint32_t>(*crc)};
  if (render(seal) != header) refuse(path, "is damaged: its header has been changed");
  const uint32_t found = checksum(file, seal);
  if (found != seal.crc) {
    refuse(path,
           fmt::format("is damaged: expected the checksum {:08x}, found {:08x}", seal.crc, found));
  }
}

}  // namespace

void seal_file(const std::string& path, int64_t format) {
  try {
    const File file(path, O_RDWR);
    Seal seal{format, file.size(), 0};
    seal.crc = checksum(file, seal);
    file.write(render(seal));
  } catch (const std::system_error& error) {
    throw StateError("cannot write '" + path + "': " + error.code().message());
  }
}

void verify_seal(const std::string& path, int64_t newest_format) {
  try {
    verify(path, newest_format);
  } catch (const std::system_error& error) {
    throw CheckpointError("cannot read the checkpoint '" + path + "': " + error.code().message());
  }
}

}  // namespace lacuna
