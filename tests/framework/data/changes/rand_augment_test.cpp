#include "lacuna/framework/data/changes/rand_augment.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lacuna/framework/data/changes/augment.h"

namespace lacuna::rand_augment_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Bytes = std::vector<uint8_t>;

Bytes changed(ImageOperation operation, double strength, Bytes pixels, int64_t channels,
              int64_t height, int64_t width) {
  apply(operation, strength,
        {.pixels = pixels, .channels = channels, .height = height, .width = width});
  return pixels;
}

Bytes ramp(size_t count) {
  Bytes pixels(count);
  std::iota(pixels.begin(), pixels.end(), uint8_t{1});
  return pixels;
}

TEST(RandAugment, LeavesImagesAloneWithoutStrength) {
  for (int i = 0; i < kImageOperations; ++i) {
    const auto operation = static_cast<ImageOperation>(i);
    if (operation == ImageOperation::AutoContrast || operation == ImageOperation::Equalize) {
      continue;
    }
    EXPECT_EQ(changed(operation, 0.0, ramp(3 * 20), 3, 4, 5), ramp(3 * 20)) << i;
  }
}

TEST(RandAugment, ShiftsAndShears) {
  const Bytes image = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  // 0.453 · 0.75 · 3 pixels are 1.02.
  EXPECT_THAT(changed(ImageOperation::TranslateX, 0.75, image, 1, 3, 3),
              ElementsAre(2, 3, 0, 5, 6, 0, 8, 9, 0));
  EXPECT_THAT(changed(ImageOperation::TranslateX, -0.75, image, 1, 3, 3),
              ElementsAre(0, 1, 2, 0, 4, 5, 0, 7, 8));
  EXPECT_THAT(changed(ImageOperation::TranslateY, 0.75, image, 1, 3, 3),
              ElementsAre(4, 5, 6, 7, 8, 9, 0, 0, 0));
  // 2 rows from the middle one, 0.3 pixels a row: 0.6 rounds to 1.
  const Bytes tall = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3};
  EXPECT_THAT(changed(ImageOperation::ShearX, 1.0, tall, 1, 5, 3),
              ElementsAre(0, 1, 2, 1, 2, 3, 1, 2, 3, 1, 2, 3, 2, 3, 0));
  const Bytes wide = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
  EXPECT_THAT(changed(ImageOperation::ShearY, -1.0, wide, 1, 3, 5),
              ElementsAre(2, 1, 1, 1, 0, 3, 2, 2, 2, 1, 0, 3, 3, 3, 2));
}

TEST(RandAugment, TurnsAroundTheMiddle) {
  Bytes image(81);
  image[4 * 9 + 8] = 9;  // four to the right of the middle
  const Bytes turned = changed(ImageOperation::Rotate, 1.0, image, 1, 9, 9);
  // By 30 degrees it stands at (3.46, ±2): rows and columns to the nearest.
  EXPECT_EQ(turned[2 * 9 + 7] + turned[6 * 9 + 7], 9);
  EXPECT_EQ(changed(ImageOperation::Rotate, -1.0, image, 1, 9, 9)[2 * 9 + 7], turned[6 * 9 + 7]);
}

TEST(RandAugment, ChangesColours) {
  EXPECT_THAT(changed(ImageOperation::Brightness, -1.0, {0, 100, 250}, 1, 1, 3),
              ElementsAre(0, 10, 25));
  EXPECT_THAT(changed(ImageOperation::Brightness, 1.0, {0, 100, 255}, 1, 1, 3),
              ElementsAre(0, 190, 255));
  // The mean is 50.
  EXPECT_THAT(changed(ImageOperation::Contrast, -1.0, {0, 50, 100}, 1, 1, 3),
              ElementsAre(45, 50, 55));
  // The grey of (200, 100, 0) is 118.5.
  EXPECT_THAT(changed(ImageOperation::Color, -1.0, {200, 100, 0}, 3, 1, 1),
              ElementsAre(127, 117, 107));
  EXPECT_THAT(changed(ImageOperation::Color, -1.0, {200, 100}, 1, 1, 2), ElementsAre(200, 100));
  EXPECT_THAT(changed(ImageOperation::Posterize, 1.0, {15, 16, 255}, 1, 1, 3),
              ElementsAre(0, 16, 240));
  EXPECT_THAT(changed(ImageOperation::Solarize, 0.5, {127, 128, 255}, 1, 1, 3),
              ElementsAre(127, 127, 0));
  EXPECT_THAT(changed(ImageOperation::AutoContrast, 0.5, {50, 60, 100, 7, 7, 7}, 2, 1, 3),
              ElementsAre(0, 51, 255, 7, 7, 7));
  Bytes image(9, 0);
  image[4] = 130;  // smoothed: 50, and twice as far from it less a tenth: 50 + 0.1 · 80
  EXPECT_EQ(changed(ImageOperation::Sharpness, -1.0, image, 1, 3, 3)[4], 58);
}

TEST(RandAugment, MakesHistogramsFlat) {
  Bytes image(1024);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(100 + i / 256);
  const Bytes flat = changed(ImageOperation::Equalize, 0.0, image, 1, 32, 32);
  const std::set<uint8_t> values(flat.begin(), flat.end());
  // 768 pixels in 255 steps of 3: each value is a 256th pixel after the one before.
  EXPECT_THAT(values, ElementsAre(0, 85, 171, 255));
  EXPECT_EQ(changed(ImageOperation::Equalize, 0.0, Bytes(4, 9), 1, 2, 2), Bytes(4, 9));
}

void augment(const RandAugmentOptions& options, const CounterRng& rng, int64_t example,
             const ByteImage& image) {
  rand_augment(options, draw_operations(options, rng, std::vector<int64_t>{example}), image);
}

// Draws are made many at a time; they are those of each operation's own places.
TEST(RandAugment, DrawsTheNumbersOfEachExample) {
  const CounterRng rng(4, "test", 2);
  for (const int64_t operations : {0, 1, 2, 16}) {
    const std::vector<int64_t> examples = {3, 0, 700, 12, 13};
    const auto words = draw_operations({.operations = operations}, rng, examples);
    std::vector<uint32_t> expected;
    for (const int64_t example : examples) {
      for (int64_t number = 0; number < 2 * operations; ++number) {
        const auto block = rng.block(static_cast<uint64_t>(32 * example + number));
        expected.insert(expected.end(), block.begin(), block.end());
      }
    }
    EXPECT_EQ(words, expected) << operations;
  }
}

TEST(RandAugment, IsAFunctionOfTheExample) {
  const RandAugmentOptions options{.operations = 2, .magnitude = 20.0};
  const auto of = [&](int64_t example, uint64_t epoch) {
    Bytes image = ramp(3 * 64);
    augment(options, CounterRng(1, "test", epoch), example,
            {.pixels = image, .channels = 3, .height = 8, .width = 8});
    return image;
  };
  EXPECT_EQ(of(5, 2), of(5, 2));
  std::set<Bytes> different;
  for (int64_t example = 0; example < 200; ++example) different.insert(of(example, 0));
  EXPECT_GT(different.size(), 60u);
  EXPECT_NE(of(5, 2), of(5, 3));
}

TEST(RandAugment, ChangesNormalizedInputsAsTheirBytes) {
  const float scale = 1.0f / (255.0f * 0.25f), offset = -2.0f;
  Tensor images = Tensor::empty(Shape{50, 4, 5});
  for (int64_t i = 0; i < images.numel(); ++i) {
    images.mutable_data()[i] = static_cast<float>(i * 37 % 256) * scale + offset;
  }
  std::vector<int64_t> indices(50);
  std::iota(indices.begin(), indices.end(), int64_t{0});
  AugmentOptions options{.rand_augment = {.operations = 1, .magnitude = 15.0},
                         .byte_scales = {scale},
                         .byte_offsets = {offset}};
  require_augmentable(options, Shape{4, 5});
  EXPECT_EQ(options.to_string(), "rand_augment 1 of magnitude 15");
  const Tensor result = augmented(images, indices, options, {.seed = 1, .epoch = 2});
  int same = 0;
  for (int64_t i = 0; i < 50; ++i) {
    Bytes bytes(20);
    for (int64_t j = 0; j < 20; ++j) {
      bytes[static_cast<size_t>(j)] = static_cast<uint8_t>((i * 20 + j) * 37 % 256);
    }
    const Bytes before = bytes;
    augment(options.rand_augment, CounterRng(1, "rand_augment", 2), i,
            {.pixels = bytes, .channels = 1, .height = 4, .width = 5});
    same += bytes == before ? 1 : 0;
    for (int64_t j = 0; j < 20; ++j) {
      EXPECT_EQ(result.data()[i * 20 + j],
                static_cast<float>(bytes[static_cast<size_t>(j)]) * scale + offset);
    }
  }
  EXPECT_LT(same, 25);
}

}  // namespace
}  // namespace lacuna::rand_augment_test
