#include "lacuna/framework/kernels/select/block_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace {

using test::normal_values;

// √ Σ w² or Σ |w| of the tile at (row, column), in double precision.
double expected(TileNorm norm, const TileShape& tile, const std::vector<float>& weights,
                int64_t columns, int64_t row, int64_t column) {
  double sum = 0.0;
  for (int64_t r = row * tile.rows; r < (row + 1) * tile.rows; ++r) {
    for (int64_t c = column * tile.columns; c < (column + 1) * tile.columns; ++c) {
      const double w = weights[static_cast<size_t>(r * columns + c)];
      sum += norm == TileNorm::L1 ? std::abs(w) : w * w;
    }
  }
  return norm == TileNorm::L1 ? sum : std::sqrt(sum);
}

struct Case {
  TileShape tile;
  int64_t tile_rows, tile_columns;
};

class BlockScores : public testing::TestWithParam<Case> {};

TEST_P(BlockScores, AreTheNormsOfTheTiles) {
  const auto& [tile, tile_rows, tile_columns] = GetParam();
  const int64_t rows = tile_rows * tile.rows, columns = tile_columns * tile.columns;
  const std::vector<float> weights = normal_values("w", rows * columns);
  for (const TileNorm norm : {TileNorm::L1, TileNorm::L2}) {
    std::vector<float> scores(static_cast<size_t>(tile_rows * tile_columns), NAN);
    block_scores(norm, tile, weights.data(), rows, columns, scores.data());
    for (int64_t i = 0; i < tile_rows * tile_columns; ++i) {
      const double value =
          expected(norm, tile, weights, columns, i / tile_columns, i % tile_columns);
      ASSERT_NEAR(scores[static_cast<size_t>(i)], value, 1e-6 * value + 1e-6) << i;
    }
  }
}

// Every third tile of each row is missing, and all of tile row 1.
TEST_P(BlockScores, OfStoredTilesAreThoseOfTheMatrix) {
  const auto& [tile, tile_rows, tile_columns] = GetParam();
  const int64_t rows = tile_rows * tile.rows, columns = tile_columns * tile.columns;
  const std::vector<float> weights = normal_values("w", rows * columns);
  const auto exists = [](int64_t row, int64_t column) { return row != 1 && (row + column) % 3; };
  std::vector<int64_t> row_begin{0};
  std::vector<float> stored;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (!exists(r / tile.rows, c / tile.columns)) continue;
      stored.push_back(weights[static_cast<size_t>(r * columns + c)]);
    }
    if ((r + 1) % tile.rows == 0) {
      row_begin.push_back(static_cast<int64_t>(stored.size()) / (tile.rows * tile.columns));
    }
  }
  for (const TileNorm norm : {TileNorm::L1, TileNorm::L2}) {
    std::vector<float> all(static_cast<size_t>(tile_rows * tile_columns)), wanted;
    block_scores(norm, tile, weights.data(), rows, columns, all.data());
    for (int64_t i = 0; i < tile_rows * tile_columns; ++i) {
      if (exists(i / tile_columns, i % tile_columns)) wanted.push_back(all[static_cast<size_t>(i)]);
    }
    std::vector<float> found(wanted.size(), NAN);
    stored_block_scores(norm, tile, stored, row_begin, found);
    EXPECT_EQ(found, wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockScores,
                         testing::Values(Case{{4, 4}, 5, 7}, Case{{16, 16}, 3, 5},
                                         Case{{1, 1}, 4, 33}, Case{{8, 1}, 3, 1100},
                                         Case{{1, 8}, 7, 131}, Case{{3, 5}, 4, 300},
                                         Case{{2, 2050}, 3, 4}, Case{{1, 1}, 0, 3},
                                         Case{{4, 4}, 2, 0}, Case{{32, 32}, 40, 11}));

TEST(BlockScoresTest, DoNotDependOnTheNumberOfThreads) {
  const std::vector<float> weights = normal_values("w", 512 * 1024);
  const int before = num_threads();
  std::vector<float> one(64 * 1024), many(one.size());
  set_num_threads(1);
  block_scores(TileNorm::L2, {.rows = 8, .columns = 1}, weights.data(), 512, 1024, one.data());
  set_num_threads(5);
  block_scores(TileNorm::L2, {.rows = 8, .columns = 1}, weights.data(), 512, 1024, many.data());
  set_num_threads(before);
  EXPECT_EQ(many, one);
}

TEST(BlockScoresTest, NaNAndInfinityAreSeen) {
  std::vector<float> weights(16, 1.0f), scores(2);
  weights[2] = std::numeric_limits<float>::quiet_NaN();
  weights[5] = -std::numeric_limits<float>::infinity();
  block_scores(TileNorm::L1, {.rows = 2, .columns = 4}, weights.data(), 2, 8, scores.data());
  EXPECT_TRUE(std::isnan(scores[0]));
  EXPECT_TRUE(std::isinf(scores[1]));
}

}  // namespace
}  // namespace lacuna
