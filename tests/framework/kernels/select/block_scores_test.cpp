#include "lacuna/framework/kernels/select/block_scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::block_scores_test {
namespace {

using test::normal_values;

// √ Σ w² or Σ |w| of the tile at (row, column), in double precision.
double expected(const PatternShape& block, const std::vector<float>& weights, int64_t columns,
                int64_t row, int64_t column) {
  const bool is_sum = block.norm() == PatternShape::Norm::L1;
  double sum = 0.0;
  for (int64_t r = row * block.unit_rows(); r < (row + 1) * block.unit_rows(); ++r) {
    for (int64_t c = column * block.unit_columns(); c < (column + 1) * block.unit_columns(); ++c) {
      const double w = weights[static_cast<size_t>(r * columns + c)];
      sum += is_sum ? std::abs(w) : w * w;
    }
  }
  return is_sum ? sum : std::sqrt(sum);
}

struct Case {
  int64_t height, width;
  int64_t tile_rows, tile_columns;
};

class BlockScores : public testing::TestWithParam<Case> {};

TEST_P(BlockScores, AreTheNormsOfTheTiles) {
  const auto& [height, width, tile_rows, tile_columns] = GetParam();
  const int64_t rows = tile_rows * height, columns = tile_columns * width;
  const std::vector<float> weights = normal_values("w", rows * columns);
  for (const PatternShape::Norm norm : {PatternShape::Norm::L1, PatternShape::Norm::L2}) {
    std::vector<float> scores(static_cast<size_t>(tile_rows * tile_columns), NAN);
    const PatternShape block = PatternShape::block(height, width, norm);
    block_scores(block, weights.data(), rows, columns, scores.data());
    for (int64_t i = 0; i < tile_rows * tile_columns; ++i) {
      const double value = expected(block, weights, columns, i / tile_columns, i % tile_columns);
      ASSERT_NEAR(scores[static_cast<size_t>(i)], value, 1e-6 * value + 1e-6) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockScores,
                         testing::Values(Case{4, 4, 5, 7}, Case{16, 16, 3, 5}, Case{1, 1, 4, 33},
                                         Case{8, 1, 3, 1100}, Case{1, 8, 7, 131},
                                         Case{3, 5, 4, 300}, Case{2, 2050, 3, 4}, Case{1, 1, 0, 3},
                                         Case{4, 4, 2, 0}, Case{32, 32, 40, 11}));

TEST(BlockScoresTest, DoNotDependOnTheNumberOfThreads) {
  const std::vector<float> weights = normal_values("w", 512 * 1024);
  const int before = num_threads();
  std::vector<float> one(64 * 1024), many(one.size());
  set_num_threads(1);
  block_scores(PatternShape::block(8, 1, PatternShape::Norm::L2), weights.data(), 512, 1024,
               one.data());
  set_num_threads(5);
  block_scores(PatternShape::block(8, 1, PatternShape::Norm::L2), weights.data(), 512, 1024,
               many.data());
  set_num_threads(before);
  EXPECT_EQ(many, one);
}

TEST(BlockScoresTest, NaNAndInfinityAreSeen) {
  std::vector<float> weights(16, 1.0f), scores(2);
  weights[2] = std::numeric_limits<float>::quiet_NaN();
  weights[5] = -std::numeric_limits<float>::infinity();
  block_scores(PatternShape::block(2, 4, PatternShape::Norm::L1), weights.data(), 2, 8,
               scores.data());
  EXPECT_TRUE(std::isnan(scores[0]));
  EXPECT_TRUE(std::isinf(scores[1]));
}

}  // namespace
}  // namespace lacuna::block_scores_test
