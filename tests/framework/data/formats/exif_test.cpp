#include "lacuna/framework/data/formats/exif.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "framework/data/formats/jpeg_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/types/image_folder.hpp"

namespace lacuna::exif_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// A TIFF structure with the tag behind another one.
std::string tiff(int orientation, bool is_little, uint16_t type = 3) {
  std::string bytes = is_little ? "II" : "MM";
  const auto put = [&](uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) {
      const size_t shift = 8 * (is_little ? i : width - 1 - i);
      bytes += static_cast<char>(value >> shift & 0xFF);
    }
  };
  put(42, 2);
  put(8, 4);
  put(2, 2);
  put(0x010F, 2), put(2, 2), put(4, 4), put(0, 4);  // the maker of the camera
  put(0x0112, 2), put(type, 2), put(1, 4);
  put(static_cast<uint64_t>(orientation), type == 3 ? 2 : 4);
  if (type == 3) put(0, 2);
  put(0, 4);
  return bytes;
}

std::string segment(uint8_t marker, const std::string& content) {
  const size_t length = content.size() + 2;
  return std::string("\xFF") + static_cast<char>(marker) + static_cast<char>(length >> 8) +
         static_cast<char>(length & 0xFF) + content;
}

std::string with_exif(const std::string& jpeg, const std::string& structure) {
  return jpeg.substr(0, 2) + segment(0xE1, std::string("Exif\0\0", 6) + structure) + jpeg.substr(2);
}

// As libpng writes it, with the chunk before the image data or behind it.
std::string png_with_exif(const std::string& png, const std::string& structure, bool is_behind) {
  std::string body = "eXIf" + structure, chunk;
  const auto put = [&](uint64_t value) {
    for (const int shift : {24, 16, 8, 0}) chunk += static_cast<char>(value >> shift & 0xFF);
  };
  put(structure.size());
  chunk += body;
  put(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  constexpr size_t kHeader = 8 + 25, kEnd = 12;  // signature and IHDR; IEND
  const size_t at = is_behind ? png.size() - kEnd : kHeader;
  return png.substr(0, at) + chunk + png.substr(at);
}

int orientation_of(const std::string& bytes) {
  return exif_orientation({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

const std::string kStart = "\xFF\xD8";

TEST(Exif, OrientationIsReadInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool is_little : {true, false}) {
      for (const uint16_t type : {uint16_t{3}, uint16_t{4}}) {
        EXPECT_EQ(orientation_of(with_exif(kStart, tiff(orientation, is_little, type))),
                  orientation);
      }
    }
  }
  const std::string other = segment(0xE0, "JFIF") + "\xFF" + segment(0xE1, "http://ns.adobe.com");
  EXPECT_EQ(orientation_of(kStart + other + with_exif(kStart, tiff(6, true)).substr(2)), 6);
}

TEST(Exif, WithoutAGoodTagIsAsStored) {
  EXPECT_EQ(orientation_of(""), 1);
  EXPECT_EQ(orientation_of(kStart), 1);
  for (const int value : {0, 9, 255, 65535}) {
    EXPECT_EQ(orientation_of(with_exif(kStart, tiff(value, true))), 1) << value;
  }
  EXPECT_EQ(orientation_of(with_exif(kStart, tiff(6, true, 2))), 1);  // of another type
  EXPECT_EQ(orientation_of(kStart + segment(0xDA, "") + with_exif(kStart, tiff(6, true)).substr(2)),
            1);
}

TEST(Exif, OrientationOfAPngIsInItsChunk) {
  const std::string png = plain_png(2, 2, 9, 9, 9);
  EXPECT_EQ(orientation_of(png), 1);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool is_behind : {false, true}) {
      EXPECT_EQ(orientation_of(png_with_exif(png, tiff(orientation, is_behind), is_behind)),
                orientation);
    }
  }
  const std::string named = std::string("Exif\0\0", 6) + tiff(8, true);  // as some write it
  EXPECT_EQ(orientation_of(png_with_exif(png, named, false)), 8);
  EXPECT_EQ(orientation_of(png_with_exif(png, tiff(9, true), false)), 1);
  EXPECT_EQ(orientation_of(png_with_exif(png, "", false)), 1);
}

// Every byte changed at random, and every length: an orientation from 1 to 8, whatever is there.
TEST(Exif, OfHostileBytesIsWithinRange) {
  for (const std::string& good : {with_exif(kStart, tiff(6, true)) + segment(0xDA, "pixels"),
                                  png_with_exif(plain_png(2, 2, 9, 9, 9), tiff(6, false), true)}) {
    for (size_t length = 0; length <= good.size(); ++length) {
      // Of its own size, so that a sanitizer sees what is read behind it.
      const std::vector<uint8_t> cut(good.begin(),
                                     good.begin() + static_cast<std::ptrdiff_t>(length));
      const int found = exif_orientation(cut);
      EXPECT_TRUE(found == 1 || found == 6) << length;
    }
    for (size_t at = 0; at < good.size(); ++at) {
      for (const int byte : {0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF}) {
        std::vector<uint8_t> bytes(good.begin(), good.end());
        bytes[at] = static_cast<uint8_t>(byte);
        const int found = exif_orientation(bytes);
        EXPECT_GE(found, 1);
        EXPECT_LE(found, 8);
      }
    }
  }
}

// The pixels of a 2 x 3 image, by the figures of Exif's orientations.
TEST(Exif, TurnsTheImage) {
  const Image image{.height = 2, .width = 3, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}};
  const std::vector<std::vector<uint8_t>> turned = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image result = oriented(image, orientation);
    EXPECT_EQ(result.height, orientation < 5 ? 2 : 3);
    EXPECT_EQ(result.width, orientation < 5 ? 3 : 2);
    EXPECT_THAT(result.pixels, ElementsAreArray(turned[static_cast<size_t>(orientation - 1)]))
        << orientation;
  }
  const Image colours{.height = 1, .width = 2, .channels = 3, .pixels = {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(oriented(colours, 6).pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(oriented(colours, 8).pixels, ElementsAre(4, 5, 6, 1, 2, 3));
}

// A folder of two classes whose images are white above and black below, and lie on their side.
TEST(Exif, IsAppliedToImageFoldersOnRequest) {
  const TemporaryFolder folder;
  std::string pixels;
  for (int y = 0; y < 16; ++y) pixels += std::string(16, y < 8 ? '\xFF' : '\0');
  const std::string jpeg = with_exif(
      jpeg_bytes({.width = 16, .height = 16, .space = JCS_GRAYSCALE}, pixels), tiff(6, false));
  const std::string png = png_with_exif(
      png_bytes({.width = 16, .height = 16, .color_type = PNG_COLOR_TYPE_GRAY}, pixels),
      tiff(6, true), true);
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder / (std::string("train/") + name));
  }
  folder.write("train/a/x.jpg", jpeg);
  folder.write("train/b/x.png", png);
  Config data = Config::map({{"dir", folder.path()}, {"size", 2}, {"channels", 1}});
  const auto pixels_of = [&] {
    const DataSplits splits = load_image_folder(data, 0);
    const auto& examples = dynamic_cast<const ArrayDataset&>(*splits.train).examples();
    const auto& bytes = std::get<std::vector<uint8_t>>(examples.inputs);
    std::vector<bool> white;
    for (size_t i = 0; i < 4; ++i) {
      white.push_back(bytes[i] > 127);
      EXPECT_EQ(bytes[4 + i] > 127, bytes[i] > 127);  // of the PNG file
    }
    return white;
  };
  EXPECT_THAT(pixels_of(), ElementsAre(true, true, false, false));
  EXPECT_FALSE(data.has("orientation"));  // a run without the key stays without it
  data.set("orientation", "stored");
  EXPECT_THAT(pixels_of(), ElementsAre(true, true, false, false));
  data.set("orientation", "exif");
  EXPECT_THAT(pixels_of(), ElementsAre(false, true, false, true));
  data.set("orientation", "camera");
  EXPECT_THAT(message_of<ConfigError>([&] { pixels_of(); }), HasSubstr("exif or stored"));
}

}  // namespace
}  // namespace lacuna::exif_test
