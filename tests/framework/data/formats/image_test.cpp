#include "lacuna/framework/data/formats/image.hpp"

#include <gmock/gmock.h>

#include "framework/data/data_files.h"
#include "framework/data/formats/jpeg_files.h"
#include "framework/data/image_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"

namespace lacuna::image_test {
namespace {

using test::big_endian;
using test::message_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageFile : public ::testing::Test {
 protected:
  Image read(const std::string& bytes, const std::string& name = "image.bin") const {
    return read_image(folder_.write(name, bytes));
  }
  std::string error(const std::string& bytes) const {
    return message_of<DataError>([&] { read(bytes); });
  }
  // Neither crashes nor hangs: an image or a DataError with the file's name. Returns whether it is
  // an image.
  bool survives(const std::string& bytes) const {
    try {
      read(bytes);
      return true;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("image.bin: "));
      return false;
    }
  }

  TemporaryFolder folder_;
};

// Smooth, so that JPEG keeps it to a few units.
std::string gradient(unsigned width, unsigned height, int channels) {
  std::string pixels;
  for (unsigned y = 0; y < height; ++y) {
    for (unsigned x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) pixels += static_cast<char>(40 + 3 * x + 2 * y + 20 * c);
    }
  }
  return pixels;
}

void expect_near(const Image& image, const std::string& pixels, int tolerance) {
  ASSERT_EQ(image.pixels.size(), pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], static_cast<uint8_t>(pixels[i]), tolerance) << i;
  }
}

TEST_F(ImageFile, ReadsColoursAndGreyOfPngAsTheyAre) {
  const Image colour = read(png_bytes({.width = 2, .height = 1}, "abcdef"));
  EXPECT_EQ(colour.height, 1);
  EXPECT_EQ(colour.width, 2);
  EXPECT_EQ(colour.channels, 3);
  EXPECT_THAT(colour.pixels, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  const Image grey =
      read(png_bytes({.width = 1, .height = 3, .color_type = PNG_COLOR_TYPE_GRAY}, "abc"));
  EXPECT_EQ(grey.height, 3);
  EXPECT_EQ(grey.width, 1);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_THAT(grey.pixels, ElementsAre('a', 'b', 'c'));
}

TEST_F(ImageFile, DropsTransparencyOfPng) {
  EXPECT_THAT(read(png_bytes({.color_type = PNG_COLOR_TYPE_RGB_ALPHA}, "abcd")).pixels,
              ElementsAre('a', 'b', 'c'));
  const Image grey = read(png_bytes({.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}, "ab"));
  EXPECT_EQ(grey.channels, 1);
  EXPECT_THAT(grey.pixels, ElementsAre('a'));
}

TEST_F(ImageFile, MakesSixteenBitsOfPngEight) {
  // The nearest of 257 steps: 0x80ff is 128.5 of them.
  const Image image =
      read(png_bytes({.bit_depth = 16}, std::string("\x12\x12\x80\xff\xff\xff", 6)));
  EXPECT_THAT(image.pixels, ElementsAre(0x12, 0x80, 0xff));
}

TEST_F(ImageFile, SpreadsFewerBitsOfPng) {
  const Image bits = read(png_bytes(
      {.width = 4, .height = 1, .color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 1}, "\xa0"));
  EXPECT_THAT(bits.pixels, ElementsAre(255, 0, 255, 0));
  const Image pairs = read(png_bytes(
      {.width = 4, .height = 1, .color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 2}, "\x1b"));
  EXPECT_THAT(pairs.pixels, ElementsAre(0, 85, 170, 255));
}

TEST_F(ImageFile, LooksUpThePaletteOfPng) {
  PngSpec spec{.width = 2,
               .height = 1,
               .color_type = PNG_COLOR_TYPE_PALETTE,
               .palette = {{1, 2, 3}, {40, 50, 60}}};
  EXPECT_THAT(read(png_bytes(spec, std::string("\1\0", 2))).pixels,
              ElementsAre(40, 50, 60, 1, 2, 3));
  spec.palette_alpha = {0};
  EXPECT_THAT(read(png_bytes(spec, std::string("\1\0", 2))).pixels,
              ElementsAre(40, 50, 60, 1, 2, 3));
}

TEST_F(ImageFile, ReadsInterlacedPng) {
  const std::string pixels = gradient(9, 11, 3);
  expect_near(read(png_bytes({.width = 9, .height = 11, .interlace = PNG_INTERLACE_ADAM7}, pixels)),
              pixels, 0);
}

TEST_F(ImageFile, ReadsColoursAndGreyOfJpeg) {
  // At quality 100 of a smooth image the rounding of the transform and of the colours is left.
  for (const bool is_progressive : {false, true}) {
    const std::string colours = gradient(17, 9, 3);
    const Image colour =
        read(jpeg_bytes({.width = 17, .height = 9, .is_progressive = is_progressive}, colours));
    EXPECT_EQ(colour.height, 9);
    EXPECT_EQ(colour.width, 17);
    EXPECT_EQ(colour.channels, 3);
    expect_near(colour, colours, 3);
    const std::string greys = gradient(8, 5, 1);
    const Image grey = read(jpeg_bytes(
        {.width = 8, .height = 5, .space = JCS_GRAYSCALE, .is_progressive = is_progressive},
        greys));
    EXPECT_EQ(grey.channels, 1);
    expect_near(grey, greys, 3);
  }
}

TEST_F(ImageFile, MakesRedGreenAndBlueOfCmyk) {
  // Adobe's: 255 is no ink. 200 · 128 / 255 = 100.4, 255 · 128 / 255 = 128.
  const std::string inks(std::string("\xc8\xff\x00\x80", 4));
  const Image adobe = read(jpeg_bytes({.space = JCS_CMYK}, inks));
  EXPECT_EQ(adobe.channels, 3);
  expect_near(adobe, std::string("\x64\x80\x00", 3), 2);
  // Without the marker: 255 is all ink. (255 − 200) · (255 − 128) / 255 = 27.4.
  const Image plain = read(jpeg_bytes({.space = JCS_CMYK, .has_adobe_marker = false}, inks));
  expect_near(plain, std::string("\x1b\x00\x7f", 3), 2);
}

TEST_F(ImageFile, IsToldByItsContentNotItsName) {
  const std::string png = png_bytes({}, "abc");
  EXPECT_THAT(read(png, "photo.jpg").pixels, ElementsAre('a', 'b', 'c'));
  const std::string jpeg = jpeg_bytes({.width = 8, .height = 8}, gradient(8, 8, 3));
  EXPECT_EQ(read(jpeg, "drawing.png").width, 8);
  EXPECT_TRUE(is_image_file(folder_.write("a", png)));
  EXPECT_TRUE(is_image_file(folder_.write("b", jpeg)));
  EXPECT_FALSE(is_image_file(folder_.write("c", "BM")));
  EXPECT_FALSE(is_image_file(folder_.write("d", "")));
}

TEST_F(ImageFile, RefusesWhatIsNoImage) {
  EXPECT_EQ(error(""), folder_ / "image.bin" + ": the file is empty; expected an image");
  EXPECT_EQ(error("hello"),
            folder_ / "image.bin" +
                ": not a PNG, JPEG, WebP or GIF image: it begins with the bytes 68 65 6c 6c");
  EXPECT_THAT(error("BM......"), HasSubstr("42 4d 2e 2e, as BMP files do"));
  EXPECT_THAT(error("RIFF...."), HasSubstr("52 49 46 46"));
  EXPECT_THAT(error(std::string("II*\0....", 8)), HasSubstr("as TIFF files do"));
  EXPECT_THAT(error("B"), HasSubstr("begins with the bytes 42"));
  EXPECT_THAT(message_of<DataError>([&] { read_image(folder_ / "missing.png"); }),
              HasSubstr("missing.png: cannot be opened"));
  EXPECT_THAT(message_of<DataError>([&] { read_image(folder_.path()); }),
              HasSubstr("cannot be read: Is a directory"));
}

TEST_F(ImageFile, NamesWhatIsWrongWithADamagedImage) {
  std::string png = png_bytes({.width = 4, .height = 4}, gradient(4, 4, 3));
  EXPECT_THAT(
      error(png.substr(0, png.size() - 5)),
      HasSubstr("image.bin: the PNG image is damaged or cut short (the file ends too early"));
  png[png.find("IDAT") + 8] ^= 1;
  EXPECT_THAT(error(png), HasSubstr("image.bin: the PNG image is damaged or cut short (IDAT"));
  const std::string jpeg = jpeg_bytes({.width = 16, .height = 16}, gradient(16, 16, 3));
  EXPECT_THAT(error(jpeg.substr(0, jpeg.size() - 20)),
              HasSubstr("image.bin: the JPEG image is damaged or cut short (Premature end"));
  EXPECT_THAT(error(jpeg.substr(0, 3)), HasSubstr("the JPEG image is damaged or cut short ("));
}

TEST_F(ImageFile, RefusesAnImageOfImpossibleSizeBeforeItTakesMemory) {
  // The header alone: width and height, then eight bits of red, green and blue, and a checksum.
  const auto header = [](uint32_t width, uint32_t height) {
    const std::string chunk =
        "IHDR" + big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
    return "\x89PNG\r\n\x1a\n" + big_endian(13) + chunk + big_endian(static_cast<uint32_t>(crc)) +
           big_endian(0) + "IDAT" + big_endian(0x35af061e);
  };
  EXPECT_THAT(error(header(60000, 50000)),
              HasSubstr("image.bin: the image is 50000 x 60000 pixels; expected 1 to 67108864"));
  EXPECT_THAT(error(header(1000000000, 1)), HasSubstr("the image is 1 x 1000000000 pixels"));
  EXPECT_THAT(error(header(0, 5)), HasSubstr("the PNG image is damaged"));
  std::string jpeg = jpeg_bytes({.width = 8, .height = 8}, gradient(8, 8, 3));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xf0';
  EXPECT_THAT(error(jpeg), HasSubstr("the image is 61680 x 61680 pixels"));
}

TEST_F(ImageFile, RefusesAFileTooLargeForAnImage) {
  const std::string path = folder_.write("image.bin", "\xff\xd8\xff");
  std::filesystem::resize_file(path, static_cast<uintmax_t>(kMaxImageBytes) + (1 << 20));
  EXPECT_THAT(message_of<DataError>([&] { read_image(path); }),
              HasSubstr("image.bin: larger than 256 MiB"));
}

// One file of each kind of coding.
std::vector<std::string> samples() {
  std::vector<std::string> files;
  for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
    files.push_back(
        png_bytes({.width = 13, .height = 9, .interlace = interlace}, gradient(13, 9, 3)));
  }
  files.push_back(png_bytes({.width = 6,
                             .height = 3,
                             .color_type = PNG_COLOR_TYPE_PALETTE,
                             .bit_depth = 4,
                             .palette = {{1, 2, 3}, {4, 5, 6}},
                             .palette_alpha = {7}},
                            std::string(9, '\x01')));
  for (const bool is_progressive : {false, true}) {
    files.push_back(jpeg_bytes({.width = 13, .height = 9, .is_progressive = is_progressive},
                               gradient(13, 9, 3)));
  }
  files.push_back(jpeg_bytes({.width = 5, .height = 5, .space = JCS_CMYK}, gradient(5, 5, 4)));
  return files;
}

TEST_F(ImageFile, RefusesEveryLengthThatIsCutShort) {
  for (const std::string& file : samples()) {
    ASSERT_TRUE(survives(file));
    for (size_t length = 0; length < file.size(); ++length) {
      EXPECT_FALSE(survives(file.substr(0, length))) << length << " of " << file.size();
    }
  }
}

TEST_F(ImageFile, SurvivesChangedBytes) {
  const CounterRng rng(0, "damage");
  uint64_t draw = 0;
  int refused = 0;
  for (const std::string& file : samples()) {
    for (int attempt = 0; attempt < 150; ++attempt) {
      std::string damaged = file;
      for (uint64_t count = rng.below(draw++, 3) + 1; count > 0; --count) {
        const uint64_t at = rng.below(draw++, file.size());
        damaged[at] = static_cast<char>(rng.below(draw++, 256));
      }
      refused += survives(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 400);  // of 900: PNG has checksums, JPEG forgives much
}

}  // namespace
}  // namespace lacuna::image_test
