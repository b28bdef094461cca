// PNG by libpng. Its errors are jumps, so that every call of it that can fail stands in a function
// that has no objects of its own; what they need lives in the decoder, which outlives the jump.
#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/image_decoders.hpp"

namespace lacuna {
namespace {

class PngDecoder {
 public:
  PngDecoder(const std::string& name, std::span<const uint8_t> bytes) : name_(name), rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Image decode() {
    if (!read_header()) fail();
    // Checked before rows are allocated, here or there.
    make_image(name_, png_get_image_height(png_, info_), png_get_image_width(png_, info_), 0);
    if (!prepare_rows()) fail();
    const int64_t channels = png_get_channels(png_, info_);
    Image image = make_image(name_, png_get_image_height(png_, info_),
                             png_get_image_width(png_, info_), channels);
    const auto row_bytes = static_cast<size_t>(image.width * channels);
    if ((channels != 1 && channels != 3) || png_get_rowbytes(png_, info_) != row_bytes) {
      throw DataError(
          fmt::format("{}: a PNG image with {} channels and {} bytes per row of {} pixels; "
                      "expected one or three channels",
                      name_, channels, png_get_rowbytes(png_, info_), image.width));
    }
    std::vector<png_bytep> rows(static_cast<size_t>(image.height));
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
    if (!read_rows(rows.data())) fail();
    return image;
  }

 private:
  // Each returns false where libpng has jumped.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // make_image has the limit
    png_read_info(png_, info_);
    return true;
  }

  // Whatever the file holds becomes eight bits of grey or of red, green and blue.
  bool prepare_rows() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_scale_16(png_);
    png_set_expand(png_);  // palettes, fewer than eight bits, and one colour made transparent
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  static void on_read(png_structp png, png_bytep out, size_t count) {
    auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > decoder->rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(out, decoder->rest_.data(), count);
    decoder->rest_ = decoder->rest_.subspan(count);
  }
  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(decoder->message_.data(), message, decoder->message_.size() - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

  [[noreturn]] void fail() const {
    throw DataError(name_ + ": the PNG image is damaged or cut short (" + message_.data() + ")");
  }

  const std::string& name_;
  std::span<const uint8_t> rest_;  // not read yet
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 200> message_{};
};

}  // namespace

Image decode_png(const std::string& name, std::span<const uint8_t> bytes) {
  return PngDecoder(name, bytes).decode();
}

}  // namespace lacuna
