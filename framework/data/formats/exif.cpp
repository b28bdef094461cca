#include "lacuna/framework/data/formats/exif.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lacuna {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint8_t kStartOfScan = 0xDA, kEndOfImage = 0xD9, kExifSegment = 0xE1;
constexpr size_t kEntryBytes = 12;
constexpr uint64_t kOrientation = 0x0112, kShort = 3, kLong = 4;
constexpr int kAsStored = 1;

constexpr std::string_view kName("Exif\0\0", 6), kPngMagic("\x89PNG\r\n\x1a\n", 8);

// The TIFF structure within a PNG file's eXIf chunk, before or behind the image data; empty if
// there is none. Some programs write the name of JPEG's segment in front.
Bytes find_in_png(Bytes png) {
  constexpr size_t kFrame = 12;  // length, type and check of a chunk
  for (size_t at = kPngMagic.size(); at + kFrame <= png.size();) {
    const size_t length =
        size_t{png[at]} << 24 | size_t{png[at + 1]} << 16 | size_t{png[at + 2]} << 8 | png[at + 3];
    if (length > png.size() - at - kFrame) return {};
    const Bytes type = png.subspan(at + 4, 4), data = png.subspan(at + 8, length);
    if (begins_with(type, "eXIf")) return begins_with(data, kName) ? data.subspan(6) : data;
    at += kFrame + length;
  }
  return {};
}

// The same within a WebP file's EXIF chunk.
Bytes find_in_webp(Bytes webp) {
  constexpr size_t kFrame = 8;  // type and length of a chunk
  for (size_t at = 12; at + kFrame <= webp.size();) {
    const size_t length = size_t{webp[at + 7]} << 24 | size_t{webp[at + 6]} << 16 |
                          size_t{webp[at + 5]} << 8 | webp[at + 4];
    if (length > webp.size() - at - kFrame) return {};
    const Bytes data = webp.subspan(at + kFrame, length);
    if (begins_with(webp.subspan(at, 4), "EXIF")) {
      return begins_with(data, kName) ? data.subspan(kName.size()) : data;
    }
    at += kFrame + length + length % 2;
  }
  return {};
}

// The same within the first Exif segment of a JPEG file.
Bytes find_in_jpeg(Bytes jpeg) {
  size_t at = 2;  // after the start of the image
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xFF) {
    const uint8_t marker = jpeg[at + 1];
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) return {};
    const size_t length = size_t{jpeg[at + 2]} << 8 | jpeg[at + 3];  // with its own two bytes
    if (length < 2 || length > jpeg.size() - at - 2) return {};
    const Bytes segment = jpeg.subspan(at + 4, length - 2);
    if (marker == kExifSegment && begins_with(segment, kName)) return segment.subspan(kName.size());
    at += 2 + length;
  }
  return {};
}

// Numbers of a TIFF structure, in its byte order. *Requires* that they lie within it.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes), is_little_(begins_with(bytes, "II")) {}

  uint64_t number(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      value = value << 8 | bytes_[at + (is_little_ ? width - 1 - i : i)];
    }
    return value;
  }

 private:
  Bytes bytes_;
  bool is_little_;
};

}  // namespace

bool begins_with(std::span<const uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

int exif_orientation(Bytes image) {
  const Bytes exif = begins_with(image, kPngMagic) ? find_in_png(image)
                     : begins_with(image, "RIFF")  ? find_in_webp(image)
                                                   : find_in_jpeg(image);
  constexpr size_t kHeader = 8;
  if (exif.size() < kHeader || (!begins_with(exif, "II") && !begins_with(exif, "MM"))) {
    return kAsStored;
  }
  const Tiff tiff(exif);
  const uint64_t begin = tiff.number(4, 4);
  if (tiff.number(2, 2) != 42 || begin + 2 > exif.size()) return kAsStored;
  const uint64_t count = tiff.number(begin, 2), fit = (exif.size() - begin - 2) / kEntryBytes;
  for (uint64_t i = 0; i < std::min(count, fit); ++i) {
    const size_t entry = begin + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientation) continue;
    const uint64_t type = tiff.number(entry + 2, 2);
    if ((type != kShort && type != kLong) || tiff.number(entry + 4, 4) != 1) return kAsStored;
    const uint64_t value = tiff.number(entry + 8, type == kShort ? 2 : 4);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kAsStored;
  }
  return kAsStored;
}

Image oriented(Image image, int orientation) {
  if (orientation <= kAsStored || orientation > 8) return image;
  const bool is_turned = orientation >= 5;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image result{.height = is_turned ? image.width : image.height,
               .width = is_turned ? image.height : image.width,
               .channels = image.channels,
               .pixels = {}};
  result.pixels.resize(image.pixels.size());
  uint8_t* out = result.pixels.data();
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x, out += image.channels) {
      const int64_t row = is_turned ? x : y, column = is_turned ? y : x;
      const int64_t from_y = from_bottom ? image.height - 1 - row : row;
      const int64_t from_x = from_right ? image.width - 1 - column : column;
      std::copy_n(image.pixels.data() + (from_y * image.width + from_x) * image.channels,
                  image.channels, out);
    }
  }
  return result;
}

}  // namespace lacuna
