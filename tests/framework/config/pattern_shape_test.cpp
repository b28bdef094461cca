#include "lacuna/framework/config/pattern_shape.h"

#include <gtest/gtest.h>

#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::pattern_shape_test {
namespace {

TEST(PatternShape, ItsTextLeadsBackToIt) {
  const auto expect_text = [](const PatternShape& shape, const std::string& text) {
    EXPECT_EQ(shape.to_string(), text);
    EXPECT_EQ(PatternShape::parse(text), shape) << text;
  };
  expect_text(PatternShape(), "unstructured");
  expect_text(PatternShape::nm(2, 4), "nm 2:4");
  expect_text(PatternShape::nm(4, 4), "nm 4:4");
  expect_text(PatternShape::nm(4, 16), "nm 4:16");
  expect_text(PatternShape::nm(2, 4, 8), "nm 2:4 g8");
  expect_text(PatternShape::transposable_2_4(), "nm 2:4 transposable");
  expect_text(PatternShape::block(3, 5), "block 3x5");
  expect_text(PatternShape::block(1, 1), "block 1x1");
}

TEST(PatternShape, NoOtherTextIsOne) {
  for (const char* text : {"",
                           "csr",
                           "nm",
                           "nm ",
                           "nm 2",
                           "nm 2:",
                           "nm 2:4 ",
                           "nm 5:4",
                           "nm 0:4",
                           "nm 2:17",
                           "nm 1:4 transposable",
                           "nm 02:4",
                           "nm 2:4 transposed",
                           "nm -1:4",
                           "nm 2:99999999999",
                           "nm 5:4 g8",
                           "nm 2:4 g0",
                           "nm 2:4 g1",
                           "nm 2:4 g",
                           "nm 2:4 g8 ",
                           "nm 02:4 g8",
                           "nm -1:4 g8",
                           "nm 2:4 g8 transposable",
                           "nm 2:4 transposable g8",
                           "block",
                           "block ",
                           "block 4",
                           "block 4x",
                           "block 0x4",
                           "block 4x4x4",
                           "block 99999999999999999999x4",
                           "block 4x2000000"}) {
    EXPECT_EQ(PatternShape::parse(text), std::nullopt) << text;
  }
}

TEST(PatternShape, OnlyValidOnesExist) {
  expect_throws<ConfigError>([] { PatternShape::nm(3, 2); }, "1 <= n <= m <= 16");
  expect_throws<ConfigError>([] { PatternShape::nm(0, 4); }, "found 0:4 in groups of 1");
  expect_throws<ConfigError>([] { PatternShape::nm(2, 17); }, "found 2:17");
  expect_throws<ConfigError>([] { PatternShape::nm(2, 4, 0); }, "found 2:4 in groups of 0");
  expect_throws<ConfigError>([] { PatternShape::block(0, 4); }, "found 0x4");
  expect_throws<ConfigError>([] { PatternShape::block(4, int64_t{1} << 21); }, "found 4x2097152");
}

TEST(PatternShape, IsReadFromAConfiguration) {
  const auto nm = [](std::vector<Config::Entry> more) {
    Config map = Config::map({{"type", "nm"}, {"n", 2}, {"m", 4}});
    for (const auto& [key, value] : more) map.set(key, value);
    return PatternShape::from_config(map);
  };
  EXPECT_EQ(PatternShape::from_config(Config()), PatternShape());
  EXPECT_EQ(nm({}), PatternShape::nm(2, 4));
  EXPECT_EQ(nm({{"group", 8}}), PatternShape::nm(2, 4, 8));
  EXPECT_EQ(nm({{"transposable", true}}), PatternShape::transposable_2_4());
  EXPECT_EQ(nm({{"transposable", true}, {"search", "Greedy"}}), PatternShape::transposable_2_4());
  EXPECT_EQ(PatternShape::from_config(
                Config::map({{"type", "Block"}, {"rows", 16}, {"cols", 4}, {"norm", "l2"}})),
            PatternShape::block(16, 4, PatternShape::Norm::L2));
  expect_throws<ConfigError>([&] { nm({{"n", 4}}); }, "n must be below m = 4, found 4");
  expect_throws<ConfigError>([&] { nm({{"m", 17}}); }, "m is at most 16, found 17");
  expect_throws<ConfigError>([&] { nm({{"group", 0}}); }, "group");
  expect_throws<ConfigError>(
      [&] {
        nm({{"m", 8}, {"transposable", true}});
      },
      "only 2:4 without groups can be transposable, found 2:8");
  expect_throws<ConfigError>(
      [&] {
        nm({{"search", "best"}, {"transposable", true}});
      },
      "'exact' or 'greedy'");
  expect_throws<ConfigError>([&] { nm({{"type", "mn"}}); }, "unknown pattern 'mn'");
}

TEST(PatternShape, KnowsItsUnitsAndCells) {
  const PatternShape shared = PatternShape::nm(1, 4, 8);
  EXPECT_EQ(shared.units(Shape{16, 12}), (Shape{2, 12}));
  EXPECT_EQ(shared.divisors(), (Shape{8, 4}));
  EXPECT_EQ(shared.full_density(), 0.25);
  EXPECT_EQ(shared.cell_quota(), 1);
  EXPECT_EQ(shared.description(), "1:4 in groups of 8 rows");
  const PatternShape both_ways = PatternShape::transposable_2_4();
  EXPECT_EQ(both_ways.divisors(), (Shape{4, 4}));
  EXPECT_EQ(both_ways.cell_quota(), 8);
  EXPECT_EQ(both_ways.description(), "2:4 transposable");
  const PatternShape block = PatternShape::block(16, 4);
  EXPECT_EQ(block.units(Shape{32, 8, 3, 4}), (Shape{2, 2, 3, 4}));  // at each tap
  EXPECT_EQ(block.units(Shape{32, 8}), (Shape{2, 2}));
  EXPECT_EQ(PatternShape::block(4, 1).units(Shape{8}), (Shape{2, 1}));
  EXPECT_EQ(block.divisors(), (Shape{16, 4}));
  EXPECT_EQ(block.full_density(), 1.0);
  EXPECT_EQ(block.description(), "blocks of 16x4");
  EXPECT_EQ(PatternShape().description(), "unstructured");
}

TEST(PatternShape, RefusesAShapeThatItDoesNotDivide) {
  const auto require = [](const PatternShape& pattern, const Shape& shape) {
    return [pattern, shape] { pattern.require_fit("parameter 'w'", shape); };
  };
  expect_throws<ShapeError>(require(PatternShape::nm(2, 4), Shape{3, 10}),
                            "parameter 'w' of shape [3, 10] cannot have the pattern 2:4: its input "
                            "dimension 10 is not divisible by 4");
  expect_throws<ShapeError>(require(PatternShape::transposable_2_4(), Shape{6, 8}),
                            "2:4 transposable: its output dimension 6 is not divisible by 4");
  expect_throws<ShapeError>(require(PatternShape::nm(2, 4, 8), Shape{12, 8}),
                            "output dimension 12 is not divisible by 8");
  expect_throws<ShapeError>(require(PatternShape::block(4, 3), Shape{4, 8}),
                            "blocks of 4x3: its input dimension 8 is not divisible by 3");
  // 36 columns would do.
  expect_throws<ShapeError>(require(PatternShape::nm(2, 4), Shape{16, 6, 3, 2}),
                            "parameter 'w' of shape [16, 6, 3, 2] cannot have the pattern 2:4: its "
                            "number of input channels 6 is not divisible by 4");
  expect_throws<ShapeError>(require(PatternShape::block(4, 2), Shape{6, 4, 3, 3}),
                            "its output dimension 6 is not divisible by 4");
  require(PatternShape::transposable_2_4(), Shape{8, 4, 3, 3})();
  require(PatternShape(), Shape{3, 5})();
  require(PatternShape::block(4, 3), Shape{8, 9})();
}

}  // namespace
}  // namespace lacuna::pattern_shape_test
