#include "lacuna/sparsity/largest_part.h"

#include <gtest/gtest.h>

#include <limits>

#include "lacuna/framework/core/random.h"
#include "lacuna/sparsity/competition.h"

namespace lacuna {
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
TEST(LargestPart, IsThatOfTheCompetition) {
  using enum Structure::Norm;
  for (const Structure& structure :
       {Structure::nm(2, 4), Structure::nm(1, 4, 8), Structure::nm(2, 4, 3), Structure::nm(3, 6, 2),
        Structure::transposable_2_4(), Structure::transposable_2_4(Structure::Search::Greedy),
        Structure::block(4, 4), Structure::block(16, 16), Structure::block(3, 6, L2),
        Structure::block(8, 1), Structure::block(1, 12, L2)}) {
    for (const Shape& shape : {Shape{48, 192}, Shape{96, 132}, Shape{32, 1024}, Shape{48, 48}}) {
      if (shape[0] % (structure.unit_rows() * structure.cell_rows()) != 0) continue;
      if (shape[1] % (structure.unit_columns() * structure.cell_columns()) != 0) continue;
      const Tensor matrix = coarse(shape);
      const int64_t units = shape.numel() / structure.unit_size();
      const int64_t count = units * 3 / 10 * structure.unit_size();
      const Positions expected =
          Competition({}, structure, shape).grow_maximum(rows_of(matrix), count, Positions(shape));
      EXPECT_EQ(Positions::of(shape, largest_part(structure, matrix, count)), expected)
          << structure.description() << ", " << shape.to_string();
    }
  }
}

TEST(LargestPart, NaNIsBelowAllElse) {
  Tensor matrix = Tensor::full(Shape{4, 8}, 0.5f);
  matrix.mutable_data()[5] = std::numeric_limits<float>::quiet_NaN();  // in the second block
  const BitMask mask = largest_part(Structure::block(4, 4), matrix, 16);
  EXPECT_TRUE(mask.test(0));
  EXPECT_FALSE(mask.test(5));
}

}  // namespace
}  // namespace lacuna
