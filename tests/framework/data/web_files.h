// Small WebP and GIF files, written by their libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#if LACUNA_HAVE_GIF
#include <gif_lib.h>
#endif
#if LACUNA_HAVE_WEBP
#include <webp/encode.h>
#endif

namespace lacuna {

#if LACUNA_HAVE_WEBP
/// Without loss; `pixels` are [height, width, 3].
inline std::string webp_bytes(int width, int height, const std::vector<uint8_t>& pixels) {
  uint8_t* bytes = nullptr;
  const size_t size = WebPEncodeLosslessRGB(pixels.data(), width, height, 3 * width, &bytes);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}
#endif

#if LACUNA_HAVE_GIF
/// A frame of indices of colours.
struct GifFrame {
  int left = 0, top = 0, width = 1, height = 1;
  bool is_interlaced = false;
  std::vector<uint8_t> indices = {0};  ///< row by row
  int transparent = NO_TRANSPARENT_COLOR;
};

/// Four colours: black, red, green, blue.
inline std::string gif_bytes(int width, int height, const std::vector<GifFrame>& frames) {
  std::string bytes;
  int error = 0;
  GifFileType* gif = EGifOpen(
      &bytes,
      [](GifFileType* file, const GifByteType* data, int count) {
        static_cast<std::string*>(file->UserData)
            ->append(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
        return count;
      },
      &error);
  EGifSetGifVersion(gif, true);
  const GifColorType colours[] = {{0, 0, 0}, {255, 0, 0}, {0, 255, 0}, {0, 0, 255}};
  ColorMapObject* map = GifMakeMapObject(4, colours);
  EGifPutScreenDesc(gif, width, height, 2, 0, map);
  for (const GifFrame& frame : frames) {
    if (frame.transparent != NO_TRANSPARENT_COLOR) {
      const GraphicsControlBlock control{0, false, 0, frame.transparent};
      GifByteType extension[4];
      EGifGCBToExtension(&control, extension);
      EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, sizeof extension, extension);
    }
    EGifPutImageDesc(gif, frame.left, frame.top, frame.width, frame.height, frame.is_interlaced,
                     nullptr);
    std::vector<uint8_t> rows = frame.indices;
    for (int pass = 0; pass < (frame.is_interlaced ? 4 : 1); ++pass) {
      const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
      for (int y = frame.is_interlaced ? first[pass] : 0; y < frame.height;
           y += frame.is_interlaced ? step[pass] : 1) {
        EGifPutLine(gif, rows.data() + y * frame.width, frame.width);
      }
    }
  }
  GifFreeMapObject(map);
  EGifCloseFile(gif, &error);
  return bytes;
}
#endif

}  // namespace lacuna
