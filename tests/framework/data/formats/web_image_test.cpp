// WebP and GIF files.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "framework/data/web_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/exif.hpp"
#include "lacuna/framework/data/formats/image.hpp"

namespace lacuna::web_image_test {
namespace {

using test::message_of;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class WebImages : public ::testing::Test {
 protected:
  Image read(const std::string& bytes) { return read_image(folder_.write("image", bytes)); }
  std::string error(const std::string& bytes) {
    return message_of<DataError>([&] { read(bytes); });
  }
  bool is_image(const std::string& bytes) { return is_image_file(folder_.write("image", bytes)); }

  TemporaryFolder folder_;
};

#if LACUNA_HAVE_WEBP
TEST_F(WebImages, OfWebPHaveThePixelsThatWereWritten) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 5 * 3 * 3; ++i) pixels.push_back(static_cast<uint8_t>(7 * i));
  const std::string bytes = webp_bytes(5, 3, pixels);
  EXPECT_TRUE(is_image(bytes));
  const Image image = read(bytes);
  EXPECT_EQ(image.height, 3);
  EXPECT_EQ(image.width, 5);
  EXPECT_THAT(image.pixels, ElementsAreArray(pixels));
  for (size_t size = 12; size < bytes.size() - 2; ++size) {
    EXPECT_THAT(error(bytes.substr(0, size)), HasSubstr("WebP image is damaged or cut short"));
  }
}

TEST_F(WebImages, OfWebPMayBeTurned) {
  const std::string vp8 = webp_bytes(1, 1, {1, 2, 3}).substr(12);
  const auto chunk = [](const std::string& type, const std::string& data) {
    const auto size = static_cast<char>(data.size());
    return type + std::string{size, 0, 0, 0} + data + std::string(data.size() % 2, '\0');
  };
  const std::string tiff("II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", 22);
  const std::string chunks =
      "WEBP" + chunk("VP8X", std::string("\x08\0\0\0\0\0\0\0\0\0", 10)) + vp8 + chunk("EXIF", tiff);
  const std::string bytes =
      "RIFF" + std::string{static_cast<char>(chunks.size()), 0, 0, 0} + chunks;
  const auto orientation = [](const std::string& of) {
    return exif_orientation({reinterpret_cast<const uint8_t*>(of.data()), of.size()});
  };
  EXPECT_EQ(orientation(bytes), 6);
  EXPECT_EQ(orientation(bytes.substr(0, bytes.size() - 3)), 1);
  EXPECT_EQ(read(bytes).pixels.size(), 3u);
}
#endif

#if LACUNA_HAVE_GIF
TEST_F(WebImages, OfGifAreTheirFirstFrame) {
  const std::string bytes = gif_bytes(2, 2,
                                      {{.width = 2, .height = 2, .indices = {0, 1, 2, 3}},
                                       {.width = 2, .height = 2, .indices = {3, 3, 3, 3}}});
  EXPECT_TRUE(is_image(bytes));
  const std::vector<uint8_t> expected = {0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255};
  EXPECT_THAT(read(bytes).pixels, ElementsAreArray(expected));
  EXPECT_THAT(error(bytes.substr(0, 20)), HasSubstr("the GIF image is damaged or cut short"));
  EXPECT_THAT(error(gif_bytes(2, 2, {})), HasSubstr("it has no frame"));
}

TEST_F(WebImages, OfGifMayBeInterlacedAndSmallerThanTheScreen) {
  GifFrame rows{.width = 1, .height = 9, .is_interlaced = true, .indices = {}};
  for (int y = 0; y < 9; ++y) rows.indices.push_back(static_cast<uint8_t>(y % 4));
  const Image tall = read(gif_bytes(1, 9, {rows}));
  for (size_t y = 0; y < 9; ++y) {
    EXPECT_EQ(tall.pixels[3 * y], y % 4 == 1 ? 255 : 0) << y;
    EXPECT_EQ(tall.pixels[3 * y + 2], y % 4 == 3 ? 255 : 0) << y;
  }
  // What the frame leaves out has the transparent colour; what lies outside is cut off.
  const Image part = read(gif_bytes(
      2, 2, {{.left = 1, .top = 1, .width = 2, .height = 1, .indices = {2, 3}, .transparent = 1}}));
  const std::vector<uint8_t> expected = {255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 255, 0};
  EXPECT_THAT(part.pixels, ElementsAreArray(expected));
}
#endif

TEST_F(WebImages, AreRefusedWithTheNameOfTheLibraryThatLacks) {
#if !LACUNA_HAVE_WEBP
  EXPECT_THAT(error(std::string("RIFF\0\0\0\0WEBPVP8 ", 16)), HasSubstr("libwebp-dev"));
#endif
#if !LACUNA_HAVE_GIF
  EXPECT_THAT(error("GIF89a"), HasSubstr("libgif-dev"));
#endif
  EXPECT_THAT(error("RIFFxxxxWAVE"),
              HasSubstr("not a PNG, JPEG, WebP or GIF image: it begins with"));
  EXPECT_FALSE(is_image("RIFFxxxxWAVE"));
  EXPECT_FALSE(is_image("GIF90a"));
}

}  // namespace
}  // namespace lacuna::web_image_test
