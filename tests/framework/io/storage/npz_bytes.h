// The bytes of NumPy's files, good and bad ones, made without the code that is tested.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// A .npy file of version 1: a header of any text, and data.
inline std::string npy_file(std::string text, std::string_view data = "", char version = 1) {
  text.resize((text.size() + 11 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + text + std::string(data);
}

inline std::string npy_text(const std::string& descr, const std::string& shape,
                            const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

inline std::string npy_bytes(const std::string& descr, const std::string& shape,
                             std::string_view data, const std::string& fortran = "False") {
  return npy_file(npy_text(descr, shape, fortran), data);
}

/// A member of an archive, and what its headers say, which may be lies.
struct ZipTestMember {
  std::string name;
  std::string bytes;
  bool deflate = false;
  bool zip64_header = false;      ///< as numpy.savez writes it: sizes in an extra field
  bool sizes_behind = false;      ///< a data descriptor
  std::string local_name = {};    ///< empty: the name
  int64_t more_bytes = 0;         ///< added to the size that both headers claim
  int64_t more_in_directory = 0;  ///< to that in the directory alone
  uint32_t wrong_crc = 0;         ///< xored to the checksum
  uint16_t flags = 0;
  int method = -1;      ///< unless −1, what the headers say
  int64_t offset = -1;  ///< unless −1, where the directory says it begins
};

inline void put_number(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// An archive of them.
inline std::string zip_bytes(const std::vector<ZipTestMember>& members) {
  std::string file, directory;
  for (const ZipTestMember& member : members) {
    const std::string packed = member.deflate ? deflated(member.bytes) : member.bytes;
    const uint64_t crc = crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()),
                               static_cast<uInt>(member.bytes.size())) ^
                         member.wrong_crc;
    const auto size =
        static_cast<uint64_t>(static_cast<int64_t>(member.bytes.size()) + member.more_bytes);
    const auto packed_size = static_cast<uint64_t>(static_cast<int64_t>(packed.size()) +
                                                   (member.deflate ? 0 : member.more_bytes));
    const auto method =
        static_cast<uint64_t>(member.method >= 0 ? member.method : (member.deflate ? 8 : 0));
    const uint64_t flags = member.flags | (member.sizes_behind ? 8u : 0u);
    const uint64_t begin = file.size();
    const std::string& name = member.local_name.empty() ? member.name : member.local_name;
    const bool is_hidden = member.sizes_behind;
    put_number(file, 0x04034b50, 4);
    put_number(file, 20, 2);
    put_number(file, flags, 2);
    put_number(file, method, 2);
    put_number(file, 0x00210000, 4);
    put_number(file, is_hidden ? 0 : crc, 4);
    put_number(file, member.zip64_header ? 0xffffffff : (is_hidden ? 0 : packed_size), 4);
    put_number(file, member.zip64_header ? 0xffffffff : (is_hidden ? 0 : size), 4);
    put_number(file, name.size(), 2);
    put_number(file, member.zip64_header ? 20 : 0, 2);
    file += name;
    if (member.zip64_header) {
      put_number(file, 1, 2);
      put_number(file, 16, 2);
      put_number(file, size, 8);
      put_number(file, packed_size, 8);
    }
    file += packed;
    if (is_hidden) {
      put_number(file, 0x08074b50, 4);
      put_number(file, crc, 4);
      put_number(file, packed_size, 4);
      put_number(file, size, 4);
    }
    put_number(directory, 0x02014b50, 4);
    put_number(directory, 20, 2);
    put_number(directory, 20, 2);
    put_number(directory, flags, 2);
    put_number(directory, method, 2);
    put_number(directory, 0x00210000, 4);
    put_number(directory, crc, 4);
    put_number(directory, packed_size, 4);
    put_number(directory, size + static_cast<uint64_t>(member.more_in_directory), 4);
    put_number(directory, member.name.size(), 2);
    put_number(directory, 0, 2);
    put_number(directory, 0, 8);
    put_number(directory, 0, 2);
    put_number(directory, member.offset >= 0 ? static_cast<uint64_t>(member.offset) : begin, 4);
    directory += member.name;
  }
  const uint64_t begin = file.size();
  file += directory;
  put_number(file, 0x06054b50, 4);
  put_number(file, 0, 4);
  put_number(file, members.size(), 2);
  put_number(file, members.size(), 2);
  put_number(file, directory.size(), 4);
  put_number(file, begin, 4);
  put_number(file, 0, 2);
  return file;
}

}  // namespace lacuna
