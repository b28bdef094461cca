#include "lacuna/framework/data/changes/augment.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"

namespace lacuna::augment_test {
namespace {

using test::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr AugmentStream kStream{.seed = 3, .epoch = 5};

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

// `count` images of one shape, each with the pixels 1, 2, 3, …
Tensor images(int64_t count, const std::vector<int64_t>& shape) {
  std::vector<int64_t> sizes{count};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Tensor tensor = Tensor::empty(Shape(sizes));
  const int64_t each = tensor.numel() / count;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.mutable_data()[i] = static_cast<float>(i % each + 1);
  }
  return tensor;
}

std::vector<std::vector<float>> each_of(const Tensor& tensor) {
  const int64_t count = tensor.shape()[0], each = tensor.numel() / count;
  std::vector<std::vector<float>> result;
  for (int64_t i = 0; i < count; ++i) {
    result.emplace_back(tensor.data() + i * each, tensor.data() + (i + 1) * each);
  }
  return result;
}

std::vector<std::vector<float>> changed(const std::vector<int64_t>& shape,
                                        const AugmentOptions& options, int64_t count = 400) {
  return each_of(augmented(images(count, shape), numbers(count), options, kStream));
}

TEST(Augment, FlipsHalfOfTheImages) {
  int flipped = 0;
  for (const auto& image : changed({2, 1, 3}, {.flip = true})) {
    const bool is_flipped = image[0] == 3;
    EXPECT_THAT(image, is_flipped ? ElementsAre(3, 2, 1, 6, 5, 4) : ElementsAre(1, 2, 3, 4, 5, 6));
    flipped += is_flipped ? 1 : 0;
  }
  EXPECT_NEAR(flipped, 200, 40);  // four standard deviations of 400 coins
}

// Draws are made many at a time; they are those of each image's own places.
TEST(Augment, DrawsTheNumbersOfEachImage) {
  const CounterRng rng(kStream.seed, "augment", kStream.epoch);
  const auto all = changed({1, 3}, {.flip = true}, 50);
  for (uint64_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i][0] == 3, rng.below(8 * i + 2, 2) == 1) << i;
  }
}

TEST(Augment, CropsOutOfThePaddedImage) {
  // All nine places of 3 × 3 within 5 × 5, each as often as any other.
  std::map<std::pair<int, int>, int> places;
  for (const auto& image : changed({3, 3}, {.crop = 1, .padding = {-7.0f}}, 900)) {
    // Pixel (y, x) is 3 · y + x + 1; the middle is always one of the image's.
    const int middle = static_cast<int>(image[4]) - 1;
    const int down = middle / 3 - 1, right = middle % 3 - 1;
    ++places[{down, right}];
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        const int from_y = y + down, from_x = x + right;
        const bool is_inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 3;
        EXPECT_EQ(image[static_cast<size_t>(3 * y + x)],
                  is_inside ? static_cast<float>(3 * from_y + from_x + 1) : -7.0f);
      }
    }
  }
  EXPECT_EQ(places.size(), 9u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 100, 40);
}

TEST(Augment, PadsEachChannelByItsOwnValue) {
  for (const auto& image : changed({2, 2, 2}, {.crop = 1, .padding = {-1.0f, -2.0f}})) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(image[i] == -1.0f, image[4 + i] == -2.0f);  // the same place in both channels
      if (image[i] > 0) {
        EXPECT_EQ(image[4 + i], image[i] + 4);
      }
    }
  }
}

TEST(Augment, CutsASquareAroundAPixelOutOfAllChannels) {
  std::set<std::vector<float>> seen;
  for (const auto& image : changed({2, 4, 5}, {.cutout = 3}, 600)) {
    seen.insert(image);
    std::vector<int> rows, columns;
    for (int i = 0; i < 20; ++i) {
      const bool is_cut = image[static_cast<size_t>(i)] == 0;
      EXPECT_EQ(image[static_cast<size_t>(20 + i)] == 0, is_cut);
      if (!is_cut) {
        EXPECT_EQ(image[static_cast<size_t>(i)], static_cast<float>(i + 1));
      }
      if (is_cut) rows.push_back(i / 5), columns.push_back(i % 5);
    }
    const auto [top, bottom] = std::ranges::minmax(rows);
    const auto [left, right] = std::ranges::minmax(columns);
    // A whole rectangle; 3 long, or 2 where it is clipped.
    EXPECT_EQ(static_cast<int>(rows.size()), (bottom - top + 1) * (right - left + 1));
    EXPECT_EQ(bottom - top + 1, top == 0 && bottom == 1 ? 2 : bottom == 3 && top == 2 ? 2 : 3);
    EXPECT_EQ(right - left + 1, left == 0 && right == 1 ? 2 : right == 4 && left == 3 ? 2 : 3);
  }
  EXPECT_EQ(seen.size(), 20u);  // one for each pixel that it is centred at
}

TEST(Augment, CutsAfterTheCropAndAnEvenSquareAsWide) {
  for (const auto& image : changed({6, 6}, {.crop = 2, .cutout = 4, .padding = {9.0f}})) {
    EXPECT_GE(std::ranges::count(image, 0.0f), 4);  // a quarter of it at a corner
    EXPECT_LE(std::ranges::count(image, 0.0f), 16);
  }
}

TEST(Augment, IsAPureFunctionOfSeedEpochAndIndex) {
  const AugmentOptions options{.crop = 3, .flip = true, .cutout = 2};
  const Tensor inputs = images(50, {8, 8});
  const auto all = each_of(augmented(inputs, numbers(50), options, kStream));
  // In another order, some twice, in batches of another size.
  const std::vector<int64_t> some{7, 3, 3, 49};
  const auto few = each_of(augmented(images(4, {8, 8}), some, options, kStream));
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(few[i], all[static_cast<size_t>(some[i])]);
  EXPECT_NE(all, each_of(augmented(inputs, numbers(50), options, {.seed = 4, .epoch = 5})));
  EXPECT_NE(all, each_of(augmented(inputs, numbers(50), options, {.seed = 3, .epoch = 6})));
  EXPECT_GE(std::set(all.begin(), all.end()).size(), 45u);  // of 6272 possible ones
}

TEST(Augment, AChangeDrawsTheSameWithOrWithoutTheOthers) {
  const auto cropped = changed({8, 8}, {.crop = 2}, 50);
  const auto both = changed({8, 8}, {.crop = 2, .cutout = 3}, 50);
  for (size_t i = 0; i < both.size(); ++i) {
    for (size_t pixel = 0; pixel < 64; ++pixel) {
      if (both[i][pixel] != 0) {
        EXPECT_EQ(both[i][pixel], cropped[i][pixel]);
      }
    }
  }
}

TEST(Augment, LeavesItsInputAlone) {
  const Tensor inputs = images(3, {4, 4});
  const std::vector<float> before = inputs.to_vector();
  augmented(inputs, numbers(3), {.crop = 2, .flip = true, .cutout = 2}, kStream);
  EXPECT_EQ(inputs.to_vector(), before);
}

TEST(Augment, SaysWhatItIs) {
  EXPECT_EQ(AugmentOptions{}.to_string(), "none");
  EXPECT_EQ((AugmentOptions{.crop = 4, .flip = true, .cutout = 8}).to_string(),
            "crop 4, flip, cutout 8");
  EXPECT_FALSE(AugmentOptions{}.any());
  EXPECT_TRUE(AugmentOptions{.flip = true}.any());
}

TEST(Augment, RefusesWhatDoesNotFitTheExamples) {
  const auto message = [](const AugmentOptions& options, const Shape& shape) {
    return message_of<DataError>([&] { require_augmentable(options, shape); });
  };
  EXPECT_EQ(message({.flip = true}, {784}),
            "only images can be augmented, [rows, columns] or [channels, rows, columns]; the "
            "examples have the shape [784]");
  EXPECT_EQ(message({.crop = 8}, {3, 10, 8}),
            "crop 8 must be smaller than the images, which are 10 x 8 pixels");
  EXPECT_EQ(message({.cutout = 28}, {28, 28}),
            "cutout 28 must be smaller than the images, which are 28 x 28 pixels");
  EXPECT_EQ(message({.crop = -1}, {28, 28}), "crop must be at least 0, found -1");
  EXPECT_EQ(message({.cutout = -2}, {784}), "cutout must be at least 0, found -2");
  EXPECT_EQ(message({.crop = 1, .padding = {0, 0}}, {3, 8, 8}),
            "padding has 2 values; expected one, or one for each of 3 channels");
  require_augmentable({.crop = 7, .flip = true, .cutout = 7, .padding = {0, 0, 0}}, {3, 10, 8});
  require_augmentable({}, {784});
}

}  // namespace
}  // namespace lacuna::augment_test
