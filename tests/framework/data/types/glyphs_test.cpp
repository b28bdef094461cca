#include "lacuna/framework/data/types/glyphs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "framework/data/data_files.h"
#include "framework/data/types/sum_by_place.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::glyphs_test {
namespace {

using test::message_of;
using ::testing::HasSubstr;

Config small(int train_size, int test_size) {
  return Config::map({{"type", "glyphs"}, {"train_size", train_size}, {"test_size", test_size}});
}

const Examples& examples(const std::shared_ptr<const Dataset>& dataset) {
  return dynamic_cast<const ArrayDataset&>(*dataset).examples();
}

TEST(Glyphs, ExamplesAreAPureFunctionOfSeedSplitAndIndex) {
  const Glyph glyph = draw_glyph(3, kGlyphsTrain, 17), again = draw_glyph(3, kGlyphsTrain, 17);
  EXPECT_EQ(glyph.pixels, again.pixels);
  EXPECT_EQ(glyph.label, again.label);
  EXPECT_NE(glyph.pixels, draw_glyph(4, kGlyphsTrain, 17).pixels);
  EXPECT_NE(glyph.pixels, draw_glyph(3, kGlyphsTest, 17).pixels);
  EXPECT_NE(glyph.pixels, draw_glyph(3, kGlyphsTrain, 18).pixels);
}

TEST(Glyphs, DataDoesNotDependOnThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const DataSplits one = load_glyphs(small(601, 7), 0);
  set_num_threads(4);
  const DataSplits four = load_glyphs(small(601, 7), 0);
  set_num_threads(before);
  EXPECT_EQ(examples(one.train).inputs, examples(four.train).inputs);
  EXPECT_EQ(examples(one.train).labels, examples(four.train).labels);
  EXPECT_EQ(examples(one.test).inputs, examples(four.test).inputs);
}

TEST(Glyphs, DataDependsOnItsOwnSeedAndNotOnTheRuns) {
  const Config data = small(20, 10);
  EXPECT_EQ(examples(load_glyphs(data, 1).train).inputs,
            examples(load_glyphs(data, 2).train).inputs);
  Config other = small(20, 10);
  other.set("seed", 5);
  EXPECT_NE(examples(load_glyphs(data, 1).train).inputs,
            examples(load_glyphs(other, 1).train).inputs);
}

// Stated results hold for these images only. The last bit of a sine may differ between systems.
TEST(Glyphs, ImagesStayAsTheyWere) {
  const auto draw = [](int64_t index) { return draw_glyph(0, kGlyphsTrain, index); };
  EXPECT_NEAR(sum_by_place(draw), 631579042.0, 5000.0);
}

TEST(Glyphs, EachTenExamplesHoldEveryDigitInAnOrderOfTheirOwn) {
  std::set<std::vector<int>> orders;
  for (int64_t block = 0; block < 20; ++block) {
    std::vector<int> labels;
    for (int64_t i = 0; i < 10; ++i) {
      labels.push_back(draw_glyph(0, kGlyphsTrain, 10 * block + i).label);
    }
    orders.insert(labels);
    std::ranges::sort(labels);
    for (int digit = 0; digit < 10; ++digit) EXPECT_EQ(labels[static_cast<size_t>(digit)], digit);
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(Glyphs, EveryExampleHasInkAndGround) {
  for (int64_t i = 0; i < 500; ++i) {
    const Glyph glyph = draw_glyph(0, kGlyphsTest, i);
    const auto bright = std::ranges::count_if(glyph.pixels, [](uint8_t p) { return p > 130; });
    // At least a thin 1 of 14 pixels' height; at most a third of the image.
    EXPECT_GE(bright, 12) << i;
    EXPECT_LE(bright, 784 / 3) << i;
    EXPECT_LT(*std::ranges::min_element(glyph.pixels), 20) << i;
  }
}

TEST(Glyphs, ImagesOfADigitDiffer) {
  std::set<std::array<uint8_t, 784>> images;
  for (int64_t i = 0; i < 200; ++i) images.insert(draw_glyph(0, kGlyphsTrain, i).pixels);
  EXPECT_EQ(images.size(), 200u);
}

TEST(LoadGlyphs, GivesImagesInTenClasses) {
  const DataSplits splits = load_glyphs(small(13, 1), 0);
  EXPECT_EQ(splits.train->size(), 13);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.train->example_shape(), (Shape{28, 28}));
  EXPECT_EQ(splits.train->num_classes(), 10);
}

TEST(LoadGlyphs, RefusesSizesOutOfRange) {
  EXPECT_THAT(message_of<ConfigError>([] { load_glyphs(small(0, 1), 0); }),
              HasSubstr("train_size: expected an integer of at least 1, found '0'"));
  EXPECT_THAT(message_of<ConfigError>([] { load_glyphs(small(1, 2000000000), 0); }),
              HasSubstr("test_size: expected at most 16777216 examples"));
  Config data = small(1, 1);
  data.set("seed", -1);
  EXPECT_THAT(message_of<ConfigError>([&] { load_glyphs(data, 0); }),
              HasSubstr("seed: expected an integer from 0 to 9223372036854775807"));
}

}  // namespace
}  // namespace lacuna::glyphs_test
