// JPEG by libjpeg-turbo. Its errors are jumps, so that every call of it that can fail stands in a
// function that has no objects of its own; what they need lives in the decoder, which outlives the
// jump.
#include <fmt/core.h>

#include <csetjmp>
#include <cstdio>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/image_decoders.hpp"

// jpeglib.h needs FILE, and jerror.h what jpeglib.h defines.
#include <jpeglib.h>

#include <jerror.h>

namespace lacuna {
namespace {

// Warnings that leave the image as it is meant to be; after all others a part of it is made up.
bool is_harmless(int warning) {
  switch (warning) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
      return true;
    default:
      return false;
  }
}

class JpegDecoder {
 public:
  JpegDecoder(const std::string& name, std::span<const uint8_t> bytes)
      : name_(name), bytes_(bytes) {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = on_error;
    errors_.manager.emit_message = on_message;
    errors_.manager.output_message = [](j_common_ptr) {};
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Image decode() {
    if (!read_header()) fail();
    // Checked before the decoder allocates what an image of this size takes.
    make_image(name_, jpeg_.image_height, jpeg_.image_width, 0);
    if (!start()) fail();
    Image image =
        make_image(name_, jpeg_.output_height, jpeg_.output_width, jpeg_.output_components);
    if (!read_rows(image.pixels.data(), static_cast<size_t>(image.width * image.channels))) fail();
    return image.channels == 4 ? without_black(image) : std::move(image);
  }

 private:
  struct Errors {
    jpeg_error_mgr manager;  // first: the library knows this part alone
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
  };

  // Each returns false where libjpeg has jumped.
  bool read_header() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  bool start() {
    if (setjmp(errors_.jump) != 0) return false;
    switch (jpeg_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        jpeg_.out_color_space = JCS_GRAYSCALE;
        break;
      case JCS_CMYK:
      case JCS_YCCK:
        jpeg_.out_color_space = JCS_CMYK;
        break;
      default:
        jpeg_.out_color_space = JCS_RGB;
    }
    jpeg_start_decompress(&jpeg_);
    return true;
  }

  bool read_rows(JSAMPROW pixels, size_t row_bytes) {
    if (setjmp(errors_.jump) != 0) return false;
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels + jpeg_.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  // Red, green and blue of cyan, magenta, yellow and black. Adobe's files hold them inverted.
  Image without_black(const Image& image) const {
    Image result = make_image(name_, static_cast<uint64_t>(image.height),
                              static_cast<uint64_t>(image.width), 3);
    const bool is_inverted = jpeg_.saw_Adobe_marker != FALSE;
    const auto light = [&](uint8_t ink) { return is_inverted ? ink : 255 - ink; };
    const uint8_t* in = image.pixels.data();
    for (size_t i = 0; i < result.pixels.size(); i += 3, in += 4) {
      for (size_t c = 0; c < 3; ++c) {
        result.pixels[i + c] = static_cast<uint8_t>((light(in[c]) * light(in[3]) + 127) / 255);
      }
    }
    return result;
  }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    auto* errors = reinterpret_cast<Errors*>(jpeg->err);
    errors->manager.format_message(jpeg, errors->message);
    std::longjmp(errors->jump, 1);
  }
  static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && !is_harmless(jpeg->err->msg_code)) on_error(jpeg);
  }

  [[noreturn]] void fail() const {
    throw DataError(name_ + ": the JPEG image is damaged or cut short (" + errors_.message + ")");
  }

  const std::string& name_;
  std::span<const uint8_t> bytes_;
  jpeg_decompress_struct jpeg_{};
  Errors errors_{};
};

}  // namespace

Image decode_jpeg(const std::string& name, std::span<const uint8_t> bytes) {
  return JpegDecoder(name, bytes).decode();
}

}  // namespace lacuna
