// The orientation that a camera writes into a JPEG or PNG file, and images turned by it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lacuna/framework/data/formats/image.hpp"

namespace lacuna {

/// Whether a file's first bytes are these.
bool begins_with(std::span<const uint8_t> bytes, std::string_view magic);

/// The tag 0x0112 of the first Exif segment of a JPEG file, of a PNG file's eXIf chunk or a WebP
/// file's EXIF chunk: 1 to 8, and 1 (as stored) if the file has no such segment, chunk or tag, or
/// if they are damaged. Any bytes may be given. *Cost:* the headers in front of the image data, of
/// PNG those of all chunks. *Source:* Exif 2.32, 4.5.4 and 4.6.4; TIFF 6.0, section 2; PNG (third
/// edition), 11.3.4.5.
int exif_orientation(std::span<const uint8_t> image);

/// The image as it is meant to be seen, for an orientation from 1 to 8: 2, 4, 5 and 7 mirror it, 3,
/// 6 and 8 turn it by 180°, 90° and 270° clockwise; 5 to 8 exchange height and width.
Image oriented(Image image, int orientation);

}  // namespace lacuna
