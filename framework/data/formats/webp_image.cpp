// WebP by libwebp, where lacuna was built with it.
#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/image_decoders.hpp"

#if LACUNA_HAVE_WEBP
#include <webp/decode.h>
#endif

namespace lacuna {

#if LACUNA_HAVE_WEBP

Image decode_webp(const std::string& name, std::span<const uint8_t> bytes) {
  const auto fail = [&](const char* what) {
    throw DataError(name + ": the WebP image is damaged or cut short (" + what + ")");
  };
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) fail("its header");
  if (features.has_animation != 0) {
    throw DataError(name + ": the WebP file is an animation; expected a single image");
  }
  Image image = make_image(name, static_cast<uint64_t>(features.height),
                           static_cast<uint64_t>(features.width), 3);
  const auto row_bytes = static_cast<int>(3 * image.width);
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
                        row_bytes) == nullptr) {
    fail("its pixels");
  }
  return image;
}

#else

Image decode_webp(const std::string& name, std::span<const uint8_t>) {
  throw DataError(name +
                  ": a WebP image, and this lacuna was built without libwebp (Debian's "
                  "libwebp-dev); convert it to PNG, or build lacuna with that library");
}

#endif

}  // namespace lacuna
