// Images brought to one size and to one number of channels.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/data/formats/image.hpp"

namespace lacuna {

/// Writes the image as `out`, [channels, height, width]: scaled so that it just covers height ×
/// width, the rest cropped in equal parts from both ends. Grey is repeated in each channel; colours
/// become grey by ITU-R 601-2 luma. Scaling weighs the pixels by a triangle as wide as two pixels
/// of the smaller scale (bilinear, with antialiasing), in integers: the same bytes on every
/// machine. *Requires* channels 1 or 3, sizes of at least 1, and out.size() to be their product.
/// *Source:* the Pillow library's resize with Image.BILINEAR and a box, whose rounding it follows.
void fit_image(const Image& image, int64_t channels, int64_t height, int64_t width,
               std::span<uint8_t> out);

}  // namespace lacuna
