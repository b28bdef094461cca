#include "lacuna/framework/core/shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::shape_test {
namespace {

TEST(Shape, ScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.features(), 1);
  EXPECT_EQ(scalar.batch(), 1);
  EXPECT_EQ(scalar.to_string(), "[]");
}

TEST(Shape, LeadingDimensionsAreTheBatch) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.numel(), 30);
  EXPECT_EQ(shape.features(), 5);
  EXPECT_EQ(shape.batch(), 6);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape.with_features(7), (Shape{2, 3, 7}));
  EXPECT_EQ(shape.without_batch(), (Shape{3, 5}));
  EXPECT_EQ(Shape{4}.without_batch(), Shape());
  EXPECT_EQ(shape.to_string(), "[2, 3, 5]");
}

TEST(Shape, EmptyDimensionsHaveNoElements) {
  EXPECT_EQ((Shape{0, 5}).numel(), 0);
  EXPECT_EQ((Shape{5, 0}).features(), 0);
  EXPECT_EQ((Shape{5, 0}).batch(), 5);
}

TEST(Shape, EqualWhenRankAndSizesAre) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{6}), (Shape{6, 1}));
  EXPECT_NE(Shape(), Shape{1});
}

TEST(Shape, RefusesWhatCannotBe) {
  expect_throws<ShapeError>([] { Shape{2, -1}; }, "negative dimension in shape [2, -1]");
  expect_throws<ShapeError>([] { Shape(std::vector<int64_t>(9, 1)); },
                            "a tensor has at most 8 dimensions, found 9");
  expect_throws<ShapeError>(
      [] {
        Shape{int64_t{1} << 40, int64_t{1} << 40};
      },
      "has too many elements for 64-bit indices");
  const Shape shape{2, 3}, scalar;
  expect_throws<ShapeError>([&] { shape[2]; }, "there is no dimension 2 in shape [2, 3]");
  expect_throws<ShapeError>([&] { shape[-3]; }, "there is no dimension -3 in shape [2, 3]");
  expect_throws<ShapeError>([&] { scalar.with_features(2); }, "a scalar has no feature dimension");
  expect_throws<ShapeError>([&] { scalar.without_batch(); }, "a scalar has no batch dimension");
}

TEST(Shape, RowsThatDoNotExistAreNamed) {
  const Shape shape{2, 2};
  const std::vector<int64_t> last{1}, beyond{0, 5};
  EXPECT_NO_THROW(require_rows(shape, last, 2, "parameter 'w'"));
  expect_throws<ShapeError>([&] { require_rows(shape, beyond, 4, "parameter 'w'"); },
                            "parameter 'w' of shape [2, 2] has no row 5");
  expect_throws<ShapeError>(
      [&] { require_rows(shape, last, 1, "parameter 'w'"); },
      "parameter 'w' of shape [2, 2] has rows of 2 values, found 1 value for 1 row");
}

TEST(Shape, TapsAreAllDimensionsFromTheThirdOn) {
  EXPECT_EQ(matrix_taps(Shape{16, 8, 3, 2}), 6);
  EXPECT_EQ(matrix_columns(Shape{16, 8, 3, 2}), 48);
  EXPECT_EQ(matrix_taps(Shape{16, 8, 5}), 5);
  for (const Shape& shape :
       {Shape{}, Shape{16}, Shape{16, 8}, Shape{16, 8, 1, 1}, Shape{4, 3, 0}}) {
    EXPECT_EQ(matrix_taps(shape), 1) << shape.to_string();
  }
}

}  // namespace
}  // namespace lacuna::shape_test
