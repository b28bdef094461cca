// The decoders of read_image: one for each library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lacuna/framework/data/formats/image.hpp"

namespace lacuna {

/// *Errors:* DataError that begins with `name`, the file's.
Image decode_png(const std::string& name, std::span<const uint8_t> bytes);
Image decode_jpeg(const std::string& name, std::span<const uint8_t> bytes);
Image decode_webp(const std::string& name, std::span<const uint8_t> bytes);
Image decode_gif(const std::string& name, std::span<const uint8_t> bytes);

/// An image with room for its pixels. *Errors:* DataError when it has none, or more than
/// kMaxImagePixels.
Image make_image(const std::string& name, uint64_t height, uint64_t width, int64_t channels);

}  // namespace lacuna
