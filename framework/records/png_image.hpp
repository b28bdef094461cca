// Images as PNG files in memory: colours from a palette, as mask pictures have them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace lacuna {

/// A colour for each byte: red, green, blue.
using Palette = std::array<std::array<uint8_t, 3>, 256>;

/// The bytes of a PNG file of `height` rows of `width` pixels, a byte each, which `palette` gives
/// its colour. An image of the values 0 and 255 alone is stored with one bit a pixel. The same
/// pixels give the same bytes.
/// *Errors:* ShapeError when the pixels are not width · height or there are none. *Cost:* zlib's.
/// *Source:* Portable Network Graphics (W3C, third edition), colour type 3.
std::string encode_png(int64_t width, int64_t height, std::span<const uint8_t> pixels,
                       const Palette& palette);

}  // namespace lacuna
