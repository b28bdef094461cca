// Image files (PNG, JPEG, WebP, GIF), read to bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lacuna {

/// An image as it is in its file: of one channel (grey) or of three (red, green, blue).
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< [height, width, channels], 0 to 255
};

/// Whether the orientation that a camera wrote into a JPEG file is applied.
enum class Orientation { AsStored, Exif };

/// Larger images are refused before they take any memory.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;
/// And so are larger files.
inline constexpr int64_t kMaxImageBytes = int64_t{1} << 28;

/// Whether a file begins as those of images that read_image knows. *Errors:* DataError when it
/// cannot be read.
bool is_image_file(const std::filesystem::path& path);

/// Reads a PNG, JPEG, WebP or GIF file, of the last the first frame. Its first bytes tell which
/// of them it is, not its name. Palettes become colours, 16 bits eight, CMYK red, green and blue;
/// transparency is dropped. Colour profiles are not applied; an Exif orientation is on request.
/// *Errors:* DataError with the path when the file cannot be read, is empty or none of these, is
/// damaged or cut short, is an animated WebP, is WebP or GIF and lacuna was built without libwebp
/// or giflib, or the image is too large.
Image read_image(const std::filesystem::path& path,
                 Orientation orientation = Orientation::AsStored);

}  // namespace lacuna
