#include "lacuna/framework/data/types/colour_glyphs.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/data/data_files.h"
#include "framework/data/types/sum_by_place.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::colour_glyphs_test {
namespace {

using test::message_of;
using ::testing::HasSubstr;

Config small(int train_size, int test_size) {
  return Config::map({{"train_size", train_size}, {"test_size", test_size}});
}

const Examples& examples(const std::shared_ptr<const Dataset>& dataset) {
  return dynamic_cast<const ArrayDataset&>(*dataset).examples();
}

TEST(ColourGlyphs, ExamplesAreAPureFunctionOfSeedSplitAndIndex) {
  const ColourGlyph glyph = draw_colour_glyph(3, kColourGlyphsTrain, 17);
  const ColourGlyph again = draw_colour_glyph(3, kColourGlyphsTrain, 17);
  EXPECT_EQ(glyph.pixels, again.pixels);
  EXPECT_EQ(glyph.label, again.label);
  EXPECT_NE(glyph.pixels, draw_colour_glyph(4, kColourGlyphsTrain, 17).pixels);
  EXPECT_NE(glyph.pixels, draw_colour_glyph(3, kColourGlyphsTest, 17).pixels);
  EXPECT_NE(glyph.pixels, draw_colour_glyph(3, kColourGlyphsTrain, 18).pixels);
}

// Stated results hold for these images only. The last bit of a sine may differ between systems.
TEST(ColourGlyphs, ImagesStayAsTheyWere) {
  const auto draw = [](int64_t index) { return draw_colour_glyph(0, kColourGlyphsTrain, index); };
  EXPECT_NEAR(sum_by_place(draw), 10000384187.0, 50000.0);
}

TEST(ColourGlyphs, EachTenExamplesHoldEveryDigit) {
  for (int64_t block = 0; block < 10; ++block) {
    std::set<int> labels;
    for (int64_t i = 0; i < 10; ++i) {
      labels.insert(draw_colour_glyph(0, kColourGlyphsTrain, 10 * block + i).label);
    }
    EXPECT_EQ(labels.size(), 10u);
  }
}

TEST(ColourGlyphs, DigitsStandOutAgainstTheirGround) {
  for (int64_t i = 0; i < 300; ++i) {
    const ColourGlyph glyph = draw_colour_glyph(0, kColourGlyphsTest, i);
    const auto at = [&](size_t row, size_t column, size_t channel) {
      return glyph.pixels[channel * 1024 + row * 32 + column] / 255.0;
    };
    // Pixels further than 0.3 from the mean of the first and last row: the digit's, mostly.
    int far = 0;
    for (size_t row = 0; row < 32; ++row) {
      for (size_t column = 0; column < 32; ++column) {
        double squares = 0;
        for (size_t c = 0; c < 3; ++c) {
          double ground = 0;
          for (size_t x = 0; x < 32; ++x) ground += (at(0, x, c) + at(31, x, c)) / 64;
          squares += std::pow(at(row, column, c) - ground, 2);
        }
        far += squares > 0.09 ? 1 : 0;
      }
    }
    EXPECT_GE(far, 12) << i;   // a thin 1 of 16 pixels' height
    EXPECT_LE(far, 600) << i;  // never the most of the image
  }
}

TEST(ColourGlyphs, NoChannelAndNoSideOfTheGroundIsTheDigitsAlone) {
  // Whether the middle of the image, where digits are, is lighter than its border, per channel.
  std::array<int, 3> lighter{};
  for (int64_t i = 0; i < 400; ++i) {
    const ColourGlyph glyph = draw_colour_glyph(0, kColourGlyphsTrain, i);
    for (size_t c = 0; c < 3; ++c) {
      double middle = 0, border = 0;
      for (size_t k = 0; k < 32; ++k) {
        middle += glyph.pixels[c * 1024 + 16 * 32 + k] + glyph.pixels[c * 1024 + k * 32 + 16];
        border += glyph.pixels[c * 1024 + k] + glyph.pixels[c * 1024 + 31 * 32 + k];
      }
      lighter[c] += middle > border ? 1 : 0;
    }
  }
  for (const int count : lighter) EXPECT_NEAR(count, 200, 60);
}

TEST(LoadColourGlyphs, GivesImagesOfThreeChannelsInTenClassesWhateverTheThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const DataSplits one = load_colour_glyphs(small(300, 3), 1);
  set_num_threads(4);
  const DataSplits four = load_colour_glyphs(small(300, 3), 2);  // nor the run's seed
  set_num_threads(before);
  EXPECT_EQ(examples(one.train).inputs, examples(four.train).inputs);
  EXPECT_EQ(examples(one.train).labels, examples(four.train).labels);
  EXPECT_EQ(one.train->size(), 300);
  EXPECT_EQ(one.test->size(), 3);
  EXPECT_EQ(one.train->example_shape(), (Shape{3, 32, 32}));
  EXPECT_EQ(one.train->num_classes(), 10);
  Config other = small(300, 3);
  other.set("seed", 5);
  EXPECT_NE(examples(load_colour_glyphs(other, 1).train).inputs, examples(one.train).inputs);
}

TEST(LoadColourGlyphs, RefusesSizesOutOfRange) {
  EXPECT_THAT(message_of<ConfigError>([] { load_colour_glyphs(small(0, 1), 0); }),
              HasSubstr("train_size: expected an integer of at least 1, found '0'"));
  EXPECT_THAT(message_of<ConfigError>([] { load_colour_glyphs(small(1, 2000000000), 0); }),
              HasSubstr("test_size: expected at most 16777216 examples"));
}

}  // namespace
}  // namespace lacuna::colour_glyphs_test
