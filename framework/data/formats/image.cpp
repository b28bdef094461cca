#include "lacuna/framework/data/formats/image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/byte_reader.hpp"
#include "lacuna/framework/data/formats/exif.hpp"
#include "lacuna/framework/data/formats/image_decoders.hpp"

namespace lacuna {
namespace {

using std::string_view_literals::operator""sv;

using Bytes = std::span<const uint8_t>;

// A kind of images, by how its files begin.
struct ImageKind {
  bool (*begins)(Bytes bytes);
  Image (*decode)(const std::string& name, Bytes bytes);
};
constexpr size_t kMagicBytes = 12;
constexpr std::array kKinds = {
    ImageKind{[](Bytes bytes) { return begins_with(bytes, "\x89PNG\r\n\x1a\n"); }, decode_png},
    ImageKind{[](Bytes bytes) { return begins_with(bytes, "\xff\xd8\xff"); }, decode_jpeg},
    ImageKind{[](Bytes bytes) {
                return bytes.size() >= kMagicBytes && begins_with(bytes, "RIFF") &&
                       begins_with(bytes.subspan(8), "WEBP");
              },
              decode_webp},
    ImageKind{
        [](Bytes bytes) { return begins_with(bytes, "GIF87a") || begins_with(bytes, "GIF89a"); },
        decode_gif}};

const ImageKind* kind_of(Bytes bytes) {
  const auto found =
      std::ranges::find_if(kKinds, [&](const ImageKind& kind) { return kind.begins(bytes); });
  return found == kKinds.end() ? nullptr : &*found;
}

// Other kinds of images that are met in such folders.
struct OtherKind {
  std::string_view magic, name;
};
constexpr std::array kOtherKinds = {OtherKind{"BM", "BMP"}, OtherKind{"II*\0"sv, "TIFF"},
                                    OtherKind{"MM\0*"sv, "TIFF"}, OtherKind{"P6", "PPM"}};

std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  constexpr size_t kPiece = 1 << 18, kMost = kMaxImageBytes;
  const auto require_at_most = [&](uintmax_t size) {
    if (size <= kMost) return;
    throw DataError(
        fmt::format("{}: larger than {} MiB, the limit for an image", path.string(), kMost >> 20));
  };
  ByteReader reader(path);
  std::error_code unknown;  // then it is found out as it is read
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  if (!unknown) require_at_most(size);
  std::vector<uint8_t> bytes;
  for (size_t count = kPiece; count == kPiece;) {
    const size_t begin = bytes.size();
    require_at_most(begin);
    bytes.resize(begin + kPiece);
    count = reader.read(std::span(bytes).subspan(begin));
    bytes.resize(begin + count);
  }
  return bytes;
}

std::string what_it_begins_with(std::span<const uint8_t> bytes) {
  std::string text = "it begins with the bytes";
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 4))) {
    text += fmt::format(" {:02x}", byte);
  }
  for (const OtherKind& kind : kOtherKinds) {
    if (begins_with(bytes, kind.magic)) text += fmt::format(", as {} files do", kind.name);
  }
  return text;
}

}  // namespace

Image make_image(const std::string& name, uint64_t height, uint64_t width, int64_t channels) {
  constexpr auto kMost = static_cast<uint64_t>(kMaxImagePixels);
  if (height == 0 || width == 0 || height > kMost || width > kMost || height * width > kMost) {
    throw DataError(fmt::format("{}: the image is {} x {} pixels; expected 1 to {} pixels in all",
                                name, height, width, kMost));
  }
  Image image{.height = static_cast<int64_t>(height),
              .width = static_cast<int64_t>(width),
              .channels = channels,
              .pixels = {}};
  image.pixels.resize(height * width * static_cast<uint64_t>(channels));
  return image;
}

bool is_image_file(const std::filesystem::path& path) {
  std::array<uint8_t, kMagicBytes> begin{};
  const size_t count = ByteReader(path).read(begin);
  return kind_of(Bytes(begin).first(count)) != nullptr;
}

Image read_image(const std::filesystem::path& path, Orientation orientation) {
  const std::vector<uint8_t> bytes = read_bytes(path);
  if (bytes.empty()) throw DataError(path.string() + ": the file is empty; expected an image");
  const ImageKind* kind = kind_of(bytes);
  if (kind == nullptr) {
    throw DataError(path.string() +
                    ": not a PNG, JPEG, WebP or GIF image: " + what_it_begins_with(bytes));
  }
  Image image = kind->decode(path.string(), bytes);
  if (orientation == Orientation::AsStored) return image;
  return oriented(std::move(image), exif_orientation(bytes));
}

}  // namespace lacuna
