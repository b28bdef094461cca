// The first frame of GIF files by giflib, where lacuna was built with it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/image_decoders.hpp"

#if LACUNA_HAVE_GIF
#include <gif_lib.h>
#endif

namespace lacuna {

#if LACUNA_HAVE_GIF

namespace {

class GifDecoder {
 public:
  GifDecoder(const std::string& name, std::span<const uint8_t> bytes) : name_(name), rest_(bytes) {
    int error = 0;
    gif_ = DGifOpen(this, on_read, &error);
    if (gif_ == nullptr) fail(GifErrorString(error));
  }
  ~GifDecoder() {
    int ignored = 0;
    DGifCloseFile(gif_, &ignored);
  }
  GifDecoder(const GifDecoder&) = delete;
  GifDecoder& operator=(const GifDecoder&) = delete;

  Image decode() {
    Image image = make_image(name_, static_cast<uint64_t>(std::max(0, gif_->SHeight)),
                             static_cast<uint64_t>(std::max(0, gif_->SWidth)), 3);
    find_frame();
    const GifImageDesc& frame = gif_->Image;
    // Lines outside of the image must be unpacked, too.
    make_image(name_, static_cast<uint64_t>(std::max(0, frame.Height)),
               static_cast<uint64_t>(std::max(0, frame.Width)), 0);
    read_colours();
    for (size_t i = 0; i < image.pixels.size(); i += 3) put(image, i, background_);
    constexpr std::array kFirst = {0, 4, 2, 1}, kStep = {8, 8, 4, 2};
    if (!frame.Interlace) {
      for (int y = 0; y < frame.Height; ++y) read_line(image, y);
      return image;
    }
    for (size_t pass = 0; pass < kFirst.size(); ++pass) {
      for (int y = kFirst[pass]; y < frame.Height; y += kStep[pass]) read_line(image, y);
    }
    return image;
  }

 private:
  // Goes on to the first frame, and learns on the way which colour is transparent.
  void find_frame() {
    for (GifRecordType record{}; record != IMAGE_DESC_RECORD_TYPE;) {
      require(DGifGetRecordType(gif_, &record));
      if (record == TERMINATE_RECORD_TYPE) fail("it has no frame");
      if (record == EXTENSION_RECORD_TYPE) read_extension();
    }
    require(DGifGetImageDesc(gif_));
  }

  void read_extension() {
    int code = 0;
    GifByteType* block = nullptr;  // its length, and as many bytes
    require(DGifGetExtension(gif_, &code, &block));
    while (block != nullptr) {
      GraphicsControlBlock control{};
      const bool is_control = code == GRAPHICS_EXT_FUNC_CODE &&
                              DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK;
      if (is_control) background_ = std::max(0, control.TransparentColor);
      require(DGifGetExtensionNext(gif_, &block));
    }
  }

  // Without a table of them, they are greys.
  void read_colours() {
    const ColorMapObject* map =
        gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    for (size_t i = 0; i < colours_.size(); ++i) {
      const auto grey = static_cast<uint8_t>(map == nullptr ? i : 0);
      colours_[i] = {grey, grey, grey};
      if (map == nullptr || i >= static_cast<size_t>(map->ColorCount)) continue;
      colours_[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
    }
  }

  void put(Image& image, size_t at, int colour) const {
    std::ranges::copy(colours_[static_cast<size_t>(colour)],
                      image.pixels.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // A line of the frame, of which the image shows what lies within it.
  void read_line(Image& image, int line) {
    const GifImageDesc& frame = gif_->Image;
    line_.resize(static_cast<size_t>(frame.Width));
    require(DGifGetLine(gif_, line_.data(), frame.Width));
    const int64_t y = int64_t{frame.Top} + line;
    if (y < 0 || y >= image.height) return;
    for (int64_t i = 0; i < frame.Width; ++i) {
      const int64_t x = frame.Left + i;
      if (x < 0 || x >= image.width) continue;
      put(image, static_cast<size_t>(3 * (y * image.width + x)), line_[static_cast<size_t>(i)]);
    }
  }

  static int on_read(GifFileType* gif, GifByteType* into, int wanted) {
    auto* decoder = static_cast<GifDecoder*>(gif->UserData);
    const size_t count = std::min(static_cast<size_t>(wanted), decoder->rest_.size());
    if (count > 0) std::memcpy(into, decoder->rest_.data(), count);
    decoder->rest_ = decoder->rest_.subspan(count);
    return static_cast<int>(count);
  }

  void require(int result) const {
    if (result != GIF_OK) fail(GifErrorString(gif_->Error));
  }
  [[noreturn]] void fail(const char* why) const {
    throw DataError(name_ + ": the GIF image is damaged or cut short (" +
                    (why == nullptr ? "unknown" : why) + ")");
  }

  const std::string& name_;
  std::span<const uint8_t> rest_;  // not read yet
  GifFileType* gif_ = nullptr;
  int background_ = 0;  // what pixels are that the frame leaves out
  std::array<std::array<uint8_t, 3>, 256> colours_{};
  std::vector<GifPixelType> line_;
};

}  // namespace

Image decode_gif(const std::string& name, std::span<const uint8_t> bytes) {
  return GifDecoder(name, bytes).decode();
}

#else

Image decode_gif(const std::string& name, std::span<const uint8_t>) {
  throw DataError(name +
                  ": a GIF image, and this lacuna was built without giflib (Debian's libgif-dev); "
                  "convert it to PNG, or build lacuna with that library");
}

#endif

}  // namespace lacuna
