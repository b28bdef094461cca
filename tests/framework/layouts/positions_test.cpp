#include "lacuna/framework/layouts/positions.h"

#include <gtest/gtest.h>

#include <vector>

#include "throws.h"

namespace lacuna::positions_test {
namespace {

Positions of(const Shape& shape, std::vector<int64_t> flat) { return Positions::of(shape, flat); }

TEST(PositionsTest, FilteredKeepsWhatThePlaceIsAcceptedFor) {
  const Positions all = of(Shape{3, 4}, {0, 3, 4, 9, 11});
  EXPECT_EQ(all.filtered([](size_t place) { return place % 2 == 0; }), of(Shape{3, 4}, {0, 4, 11}));
  EXPECT_EQ(all.filtered([](size_t) { return true; }), all);
  EXPECT_EQ(all.filtered([](size_t) { return false; }), Positions(Shape{3, 4}));
  EXPECT_EQ(Positions(Shape{0, 4}).filtered([](size_t) { return true; }).rows(), 0);
}

TEST(PositionsTest, WithAddsPositionsInAnyOrder) {
  const Positions some = of(Shape{3, 4}, {1, 6});
  EXPECT_EQ(some.with(std::vector<int64_t>{11, 0, 4, 5}), of(Shape{3, 4}, {0, 1, 4, 5, 6, 11}));
  EXPECT_EQ(some.with(std::vector<int64_t>{}), some);
  expect_throws<ShapeError>([&] { some.with(std::vector<int64_t>{12}); },
                            "position 12 is outside 3 rows of 4");
}

TEST(PositionsTest, FlatIndicesMustAscend) {
  expect_throws<ShapeError>(
      [] {
        of(Shape{2, 4}, {5, 0});
      },
      "position 0 follows 5; positions must ascend");
  expect_throws<ShapeError>([] { of(Shape{2, 4}, {1, 1}); }, "position 1 follows 1");
  expect_throws<ShapeError>([] { of(Shape{2, 4}, {1, 8}); }, "position 8 is outside shape [2, 4]");
}

TEST(PositionsTest, ContainsAndCommon) {
  const Positions a = of(Shape{3, 4}, {1, 6, 7, 11}), b = of(Shape{3, 4}, {0, 1, 7, 10});
  EXPECT_TRUE(a.contains(6));
  EXPECT_FALSE(a.contains(0));
  EXPECT_FALSE(a.contains(8));
  EXPECT_EQ(count_common(a, b), 2);
  EXPECT_EQ(count_common(a, a), 4);
  EXPECT_EQ(count_common(a, Positions(Shape{3, 4})), 0);
  EXPECT_EQ(places_in(a, b), (Array<int32_t>{-1, 0, 2, -1}));
}

}  // namespace
}  // namespace lacuna::positions_test
