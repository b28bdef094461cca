// Small PNG files of every kind, written by libpng.
#pragma once

#include <png.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

struct PngSpec {
  uint32_t width = 1, height = 1;
  int color_type = PNG_COLOR_TYPE_RGB;
  int bit_depth = 8;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<png_color> palette = {};
  std::vector<uint8_t> palette_alpha = {};  ///< of the palette's first colours
};

/// The file of an image; `rows` are as the format packs them.
inline std::string png_bytes(const PngSpec& spec, std::string_view rows) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp writer, png_bytep data, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(writer))
            ->append(reinterpret_cast<const char*>(data), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, spec.width, spec.height, spec.bit_depth, spec.color_type, spec.interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!spec.palette.empty()) {
    png_set_PLTE(png, info, spec.palette.data(), static_cast<int>(spec.palette.size()));
  }
  if (!spec.palette_alpha.empty()) {
    png_set_tRNS(png, info, spec.palette_alpha.data(), static_cast<int>(spec.palette_alpha.size()),
                 nullptr);
  }
  png_write_info(png, info);
  std::string copy(rows);
  const size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<png_bytep> pointers;
  for (uint32_t y = 0; y < spec.height; ++y) {
    pointers.push_back(reinterpret_cast<png_bytep>(copy.data()) + y * row_bytes);
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

/// A file of one colour.
inline std::string plain_png(uint32_t width, uint32_t height, uint8_t red, uint8_t green,
                             uint8_t blue) {
  std::string rows;
  for (uint32_t i = 0; i < width * height; ++i) {
    for (const uint8_t value : {red, green, blue}) rows += static_cast<char>(value);
  }
  return png_bytes({.width = width, .height = height}, rows);
}

}  // namespace lacuna
