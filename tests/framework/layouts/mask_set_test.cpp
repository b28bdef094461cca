#include "lacuna/framework/layouts/mask_set.h"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/pattern.h"
#include "throws.h"

namespace lacuna::mask_set_test {
namespace {

BitMask random_mask(int64_t size, float density, uint64_t seed) {
  const CounterRng rng(seed, "mask");
  BitMask mask = BitMask::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    if (rng.uniform(static_cast<uint64_t>(i)) < density) mask.set(i);
  }
  return mask;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {Shape{1, 1},  Shape{7, 5},   Shape{3, 64},
                                         Shape{9, 63}, Shape{5, 130}, Shape{40, 200},
                                         Shape{0, 4},  Shape{4, 0},   Shape{6, 3, 11}};
  return all;
}

TEST(MaskSetTest, IsTheSameWhateverItIsHeldBy) {
  for (const Shape& shape : shapes()) {
    for (const float density : {0.0f, 0.05f, 0.5f, 1.0f}) {
      const BitMask bits = random_mask(shape.numel(), density, 1);
      const MaskSet by_bits(shape, bits), by_rows(shape, Positions::of(shape, bits));
      const MaskSet of_pattern(Pattern::make(csr_layout(), shape, by_rows.positions()));
      for (const MaskSet& set : {by_bits, by_rows, of_pattern}) {
        EXPECT_EQ(set.count(), bits.count());
        EXPECT_EQ(set.size(), shape.numel());
        EXPECT_EQ(set, by_bits) << shape.to_string() << " at " << density;
        EXPECT_EQ(dead_lines(set), dead_lines(by_rows)) << shape.to_string() << " at " << density;
        for (int64_t i = 0; i < set.size(); ++i) ASSERT_EQ(set.test(i), bits.test(i));
        EXPECT_EQ(set.bits(), bits);
        EXPECT_EQ(set.positions(), by_rows.positions());
      }
    }
  }
}

TEST(MaskSetTest, OfADensePatternIsEveryPosition) {
  const MaskSet set(Pattern::dense(Shape{3, 5}));
  EXPECT_EQ(set, MaskSet::all(Shape{3, 5}));
  EXPECT_EQ(MaskSet(Pattern::dense(Shape{3, 5})).bits(), BitMask::ones(15));
}

TEST(MaskSetTest, ConvertsOnlyWhenAsked) {
  const MaskSet by_bits(Shape{4, 4}, BitMask::ones(16)), by_rows = MaskSet::all(Shape{4, 4});
  EXPECT_TRUE(by_bits.has_bits() && !by_bits.has_positions());
  EXPECT_TRUE(!by_rows.has_bits() && by_rows.has_positions());
  by_bits.positions();
  EXPECT_TRUE(by_bits.has_positions());
}

TEST(MaskSetTest, CommonPositionsAreCounted) {
  for (const int64_t size : {0, 1, 64, 1000}) {
    const Shape shape{1, size};
    const BitMask a = random_mask(size, 0.5f, 1), b = random_mask(size, 0.5f, 2);
    const MaskSet by_rows(shape, Positions::of(shape, b));
    EXPECT_EQ(count_common(MaskSet(shape, a), MaskSet(shape, b)),
              count_common(MaskSet(shape, Positions::of(shape, a)), by_rows));
    EXPECT_EQ(count_common(MaskSet(shape, a), by_rows), count_common(a, b));
    EXPECT_EQ(count_common(a, a), a.count());
  }
}

TEST(MaskSetTest, BitsAloneTakeTheShapeOfWhatTakesThem) {
  const MaskSet bits = BitMask::ones(6);
  EXPECT_EQ(bits.of_shape(Shape{2, 3}), MaskSet::all(Shape{2, 3}));
  expect_throws<ShapeError>(
      [&] {
        bits.of_shape(Shape{2, 4});
      },
      "a mask of 6 positions does not fit the shape [2, 4]");
  expect_throws<ShapeError>(
      [] {
        MaskSet(Shape{2, 3}, Positions(Shape{3, 2}));
      },
      "a mask of 3 rows and 2 columns does not fit the shape [2, 3]");
}

TEST(MaskSetTest, AboveTwoToThe32ThereAreNoBits) {
  const MaskSet wide(Shape{int64_t{1} << 17, int64_t{1} << 16});
  expect_throws<StateError>([&] { wide.bits(); }, "masks above 2^32 are not stored as bits");
  EXPECT_EQ(wide.positions().count(), 0);
}

TEST(MaskSetTest, AChannelWithoutANonzeroAtAnyTapIsDead) {
  const Shape shape{3, 40, 1, 3};  // 120 columns: channels lie across words of bits
  const Positions positions = Positions::of(shape, std::vector<int64_t>{0, 2, 64, 119, 240, 245});
  // Output 1 has none; channels 0, 21, 39 (at tap 2), and 0 and 1 of output 2 have some.
  const DeadLines expected{.rows = 1, .columns = 40 - 4};
  EXPECT_EQ(dead_lines(MaskSet(shape, positions)), expected);
  EXPECT_EQ(dead_lines(MaskSet(shape, positions.to_mask())), expected);
  EXPECT_EQ(dead_lines(MaskSet(shape)), (DeadLines{.rows = 3, .columns = 40}));
}

}  // namespace
}  // namespace lacuna::mask_set_test
