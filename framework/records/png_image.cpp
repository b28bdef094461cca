#include "lacuna/framework/records/png_image.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

void append_be32(std::string& to, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<char>(value >> shift & 0xff));
}

void append_chunk(std::string& to, std::string_view type, std::string_view data) {
  append_be32(to, static_cast<uint32_t>(data.size()));
  const std::string body = std::string(type) + std::string(data);
  to += body;
  append_be32(to, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                              static_cast<uInt>(body.size()))));
}

// Of bits at random, as masks have them, level 9 looks at every chain to its end, which takes six
// times as long as level 6, for 1 % of the bytes.
constexpr int kLevel = 6;

std::string deflated(const std::string& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(raw.data()), static_cast<uLong>(raw.size()), kLevel);
  if (result != Z_OK) throw Error("zlib cannot compress an image");
  packed.resize(size);
  return packed;
}

// Each row after a byte that marks it as not filtered.
std::string scan_lines(int64_t width, std::span<const uint8_t> pixels, bool has_two_colours) {
  std::string raw;
  for (size_t begin = 0; begin < pixels.size(); begin += static_cast<size_t>(width)) {
    const auto row = pixels.subspan(begin, static_cast<size_t>(width));
    raw.push_back('\0');
    if (!has_two_colours) {
      raw.append(row.begin(), row.end());
      continue;
    }
    for (size_t first = 0; first < row.size(); first += 8) {
      unsigned bits = 0;
      for (size_t i = first; i < std::min(first + 8, row.size()); ++i) {
        if (row[i] != 0) bits |= 0x80u >> (i - first);
      }
      raw.push_back(static_cast<char>(bits));
    }
  }
  return raw;
}

}  // namespace

std::string encode_png(int64_t width, int64_t height, std::span<const uint8_t> pixels,
                       const Palette& palette) {
  if (width < 1 || height < 1 || width > 1 << 24 || height > 1 << 24 ||
      static_cast<int64_t>(pixels.size()) != width * height) {
    throw ShapeError(fmt::format("an image of {} x {} pixels cannot be made of {} bytes", width,
                                 height, pixels.size()));
  }
  const bool has_two_colours =
      std::ranges::all_of(pixels, [](uint8_t pixel) { return pixel == 0 || pixel == 255; });
  std::string header;
  append_be32(header, static_cast<uint32_t>(width));
  append_be32(header, static_cast<uint32_t>(height));
  header += {static_cast<char>(has_two_colours ? 1 : 8), 3, 0, 0, 0};  // bits, from a palette
  std::string colours;
  for (size_t i = 0; i < palette.size(); i += has_two_colours ? 255 : 1) {
    colours.append(palette[i].begin(), palette[i].end());
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "PLTE", colours);
  append_chunk(png, "IDAT", deflated(scan_lines(width, pixels, has_two_colours)));
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace lacuna
