// Small JPEG files of every kind, written by libjpeg.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// It needs FILE.
#include <jpeglib.h>

namespace lacuna {

struct JpegSpec {
  unsigned width = 1, height = 1;
  J_COLOR_SPACE space = JCS_RGB;  ///< of the pixels: JCS_GRAYSCALE, JCS_RGB or JCS_CMYK
  bool is_progressive = false;
  bool has_adobe_marker = true;  ///< of JCS_CMYK
};

/// The file of an image at quality 100, without subsampled colours; `pixels` row by row.
inline std::string jpeg_bytes(const JpegSpec& spec, std::string_view pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = spec.width;
  jpeg.image_height = spec.height;
  jpeg.in_color_space = spec.space;
  jpeg.input_components = spec.space == JCS_GRAYSCALE ? 1 : spec.space == JCS_RGB ? 3 : 4;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
  if (spec.is_progressive) jpeg_simple_progression(&jpeg);
  if (!spec.has_adobe_marker) jpeg.write_Adobe_marker = FALSE;
  jpeg_start_compress(&jpeg, TRUE);
  std::string copy(pixels);
  const size_t row_bytes = spec.width * static_cast<size_t>(jpeg.input_components);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = reinterpret_cast<JSAMPROW>(copy.data()) + jpeg.next_scanline * row_bytes;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string bytes(reinterpret_cast<const char*>(memory), size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return bytes;
}

}  // namespace lacuna
