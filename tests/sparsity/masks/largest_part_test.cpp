#include "lacuna/sparsity/masks/largest_part.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "lacuna/framework/core/random.h"
#include "lacuna/sparsity/masks/mask_selector.h"

namespace lacuna::largest_part_test {
namespace {

// Small whole numbers: many are equal, and no sum is rounded.
Tensor coarse(const Shape& shape) {
  const CounterRng rng(2, "coarse");
  Tensor matrix = Tensor::empty(shape);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    matrix.mutable_data()[i] = static_cast<float>(rng.bits(static_cast<uint64_t>(i)) % 7) - 3.0f;
  }
  return matrix;
}

// The kernels choose what the algorithms' selection chooses from nothing, ties included.
TEST(LargestPart, IsWhatGrowthFromNothingChooses) {
  using enum PatternShape::Norm;
  for (const PatternShape& pattern :
       {PatternShape::nm(2, 4), PatternShape::nm(1, 4, 8), PatternShape::nm(2, 4, 3),
        PatternShape::nm(3, 6, 2), PatternShape::transposable_2_4(), PatternShape::block(4, 4),
        PatternShape::block(16, 16), PatternShape::block(3, 6, L2), PatternShape::block(8, 1),
        PatternShape::block(1, 12, L2)}) {
    for (const Shape& shape : {Shape{48, 192}, Shape{96, 132}, Shape{32, 1024}, Shape{48, 48}}) {
      if (shape[0] % (pattern.unit_rows() * pattern.cell_rows()) != 0) continue;
      if (shape[1] % (pattern.unit_columns() * pattern.cell_columns()) != 0) continue;
      const Tensor matrix = coarse(shape);
      const int64_t units = shape.numel() / pattern.unit_size();
      const int64_t count = units * 3 / 10 * pattern.unit_size();
      const MaskSelector selector({}, pattern, shape);
      const MaskSet expected = selector.grow_maximum(rows_of(matrix), count, MaskSet(shape));
      const MaskSet largest = selector.largest(matrix, count);
      EXPECT_TRUE(largest.is_known_to_have(pattern));
      EXPECT_EQ(largest, expected) << pattern.description() << ", " << shape.to_string();
    }
  }
}

TEST(LargestPart, NaNIsBelowAllElse) {
  Tensor matrix = Tensor::full(Shape{4, 8}, 0.5f);
  matrix.mutable_data()[5] = std::numeric_limits<float>::quiet_NaN();  // in the second block
  const BitMask mask = largest_part(PatternShape::block(4, 4), matrix, 16);
  EXPECT_TRUE(mask.test(0));
  EXPECT_FALSE(mask.test(5));
}

}  // namespace
}  // namespace lacuna::largest_part_test
