#include "lacuna/framework/data/formats/image_resize.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace lacuna::image_resize_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Pixels step · i modulo 256.
Image steps(int64_t height, int64_t width, int64_t channels, int64_t step) {
  Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (int64_t i = 0; i < height * width * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(step * i % 256));
  }
  return image;
}

std::vector<uint8_t> fitted(const Image& image, int64_t channels, int64_t height, int64_t width) {
  std::vector<uint8_t> out(static_cast<size_t>(channels * height * width));
  fit_image(image, channels, height, width, out);
  return out;
}

TEST(FitImage, KeepsAnImageOfTheSizeAndPutsItsChannelsApart) {
  EXPECT_THAT(fitted(steps(1, 3, 3, 1), 3, 1, 3), ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8));
}

// The expected bytes of these three are Pillow 9.4's: image.resize((width, height), Image.BILINEAR,
// box) with the box of the middle, and image.convert("L").
TEST(FitImage, ShrinksByTheMeanOfWhatAPixelCovers) {
  EXPECT_THAT(fitted(steps(5, 7, 1, 37), 1, 2, 3), ElementsAre(35, 114, 193, 41, 120, 199));
}

TEST(FitImage, EnlargesBetweenThePixels) {
  EXPECT_THAT(fitted(steps(2, 2, 3, 91), 3, 4, 4),
              ElementsAreArray({0,   4,   13,  17,  9,   13,  22,  26,  26,  30,  39,  43,
                                34,  38,  47,  51,  91,  95,  104, 108, 100, 104, 113, 117,
                                117, 121, 130, 134, 125, 129, 138, 142, 182, 186, 195, 199,
                                191, 195, 204, 208, 208, 212, 221, 225, 216, 220, 229, 233}));
}

TEST(FitImage, MakesColoursGrey) {
  EXPECT_THAT(fitted(steps(2, 2, 3, 91), 1, 2, 2), ElementsAre(74, 91, 108, 125));
}

TEST(FitImage, RepeatsGreyInEachChannel) {
  EXPECT_THAT(fitted(steps(1, 2, 1, 9), 3, 1, 2), ElementsAre(0, 9, 0, 9, 0, 9));
}

TEST(FitImage, CropsTheLongerSideInTheMiddle) {
  EXPECT_THAT(fitted(steps(1, 5, 1, 10), 1, 1, 1), ElementsAre(20));
  EXPECT_THAT(fitted(steps(5, 1, 1, 10), 1, 1, 1), ElementsAre(20));
  EXPECT_THAT(fitted(steps(2, 6, 1, 10), 1, 2, 2), ElementsAre(20, 30, 80, 90));
}

TEST(FitImage, KeepsOneColourWhateverTheSize) {
  Image image{.height = 37, .width = 1200, .channels = 3, .pixels = {}};
  image.pixels.assign(37 * 1200 * 3, 255);
  for (const int64_t size : {1, 2, 5, 36, 64}) {
    EXPECT_THAT(fitted(image, 3, size, size + 3), Each(255)) << size;
  }
}

// Were all of its rows scaled, this would take 13 gigabytes.
TEST(FitImage, WorksOnThePartThatIsKeptAlone) {
  Image image{.height = 1 << 21, .width = 1, .channels = 1, .pixels = {}};
  image.pixels.assign(1 << 21, 7);
  EXPECT_THAT(fitted(image, 3, 2, 2048), Each(7));
}

}  // namespace
}  // namespace lacuna::image_resize_test
