#include "lacuna/sparsity/masks/balanced_mask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/sparsity/masks/mask_init.h"
#include "throws.h"

namespace lacuna::balanced_mask_test {
namespace {

CounterRng rng(uint64_t seed = 0) { return CounterRng(seed, "fc1.weight"); }

std::vector<int64_t> row_counts(const Positions& positions) {
  std::vector<int64_t> counts;
  for (int64_t r = 0; r < positions.rows(); ++r) {
    counts.push_back(static_cast<int64_t>(positions.row(r).size()));
  }
  return counts;
}

std::vector<int64_t> column_counts(const Positions& positions) {
  std::vector<int64_t> counts(static_cast<size_t>(positions.columns()));
  for (const uint32_t column : positions.column()) ++counts[column];
  return counts;
}

int64_t spread(const std::vector<int64_t>& counts) {
  if (counts.empty()) return 0;
  const auto [low, high] = std::ranges::minmax(counts);
  return high - low;
}

TEST(BalancedMask, SpreadsEveryCountOverRowsAndColumns) {
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 5}, Shape{5, 7}, Shape{1, 13}, Shape{13, 1},
                             Shape{8, 8}, Shape{3, 4, 2}}) {
    for (int64_t nnz = 0; nnz <= shape.numel(); ++nnz) {
      // That no row has a column twice is checked by the constructor of Positions.
      const Positions mask = balanced_mask(rng(), shape, nnz);
      EXPECT_EQ(mask.count(), nnz);
      EXPECT_LE(spread(row_counts(mask)), 1) << shape.to_string() << " " << nnz;
      EXPECT_LE(spread(column_counts(mask)), 1) << shape.to_string() << " " << nnz;
    }
  }
}

TEST(BalancedMask, LeavesNothingEmptyOnceThereIsEnough) {
  const Positions mask = balanced_mask(rng(), Shape{300, 1000}, 1000);
  EXPECT_EQ(std::ranges::count(row_counts(mask), 0), 0);
  EXPECT_EQ(std::ranges::count(column_counts(mask), 0), 0);
}

TEST(BalancedMask, GroupsHaveEqualCounts) {
  const Shape shape{12, 18};
  for (const int64_t nnz : {0, 6, 18, 54, 120, 216}) {
    const Positions by_rows = balanced_mask(rng(), shape, nnz, ScoreGroups::rows(3));
    const Positions by_columns = balanced_mask(rng(), shape, nnz, ScoreGroups::columns(6));
    std::vector<int64_t> of_rows(3), of_columns(6);
    by_rows.for_each([&](int64_t flat) { ++of_rows[static_cast<size_t>(flat / 18 / 4)]; });
    by_columns.for_each([&](int64_t flat) { ++of_columns[static_cast<size_t>(flat % 18 / 3)]; });
    EXPECT_EQ(of_rows, std::vector<int64_t>(3, nnz / 3));
    EXPECT_EQ(of_columns, std::vector<int64_t>(6, nnz / 6));
    EXPECT_LE(spread(row_counts(by_columns)), 1);
  }
}

TEST(BalancedMask, IsKeyedBySeedAndRandom) {
  const Shape shape{64, 64};
  EXPECT_TRUE(balanced_mask(rng(1), shape, 256) == balanced_mask(rng(1), shape, 256));
  EXPECT_FALSE(balanced_mask(rng(1), shape, 256) == balanced_mask(rng(2), shape, 256));
  // Rows 16 apart are dealt from decks of their own: they have no more in common than chance gives.
  const Positions mask = balanced_mask(rng(1), shape, 256);
  int64_t common = 0;
  for (int64_t r = 0; r + 16 < 64; ++r) {
    for (const uint32_t column : mask.row(r)) {
      common += std::ranges::count(mask.row(r + 16), column);
    }
  }
  EXPECT_LT(common, 30);  // 48 rows · 4 · 4/64 = 12 on average
}

TEST(BalancedMask, IsAnInitMethod) {
  Parameter parameter(Shape{30, 40}, Initializer::uniform(1.0));
  parameter.set_name("fc1.weight");
  const MaskSet mask = InitMethod("balanced")
                           .make({.parameter = parameter,
                                  .sparsity = 0.9f,
                                  .nnz = 120,
                                  .groups = {},
                                  .pattern = {},
                                  .seed = 3});
  EXPECT_EQ(row_counts(mask.positions()), std::vector<int64_t>(30, 4));
  EXPECT_EQ(column_counts(mask.positions()), std::vector<int64_t>(40, 3));
}

TEST(ReviveEmpty, GivesEachEmptyRowAndColumnAPosition) {
  const Shape shape{6, 9};
  const std::vector<int64_t> flat = {0, 1, 9, 27};  // rows 0, 1, 3; columns 0 and 1
  const Positions kept = Positions::of(shape, flat);
  const Positions revived = revive_empty(rng(), 20, kept, GroupIndex({}, shape));
  EXPECT_EQ(std::ranges::count(row_counts(revived), 0), 0);
  EXPECT_EQ(std::ranges::count(column_counts(revived), 0), 0);
  EXPECT_EQ(revived.count(), 4 + 7);  // three empty rows meet three of seven empty columns
  for (const int64_t position : flat) EXPECT_TRUE(revived.contains(position));
  EXPECT_TRUE(revive_empty(rng(), 20, revived, GroupIndex({}, shape)) == revived);
}

TEST(ReviveEmpty, StopsAtTheTarget) {
  const Shape shape{6, 9};
  const Positions kept = Positions::of(shape, std::vector<int64_t>{0, 1, 9, 27});
  EXPECT_EQ(revive_empty(rng(), 6, kept, GroupIndex({}, shape)).count(), 6);
  EXPECT_EQ(revive_empty(rng(), 3, kept, GroupIndex({}, shape)).count(), 4);
  const GroupIndex rows(ScoreGroups::rows(2), shape);
  const Positions grouped = revive_empty(rng(), 3, kept, rows);  // of 3 and 1 in the groups
  std::vector<int64_t> counts(2);
  grouped.for_each([&](int64_t flat) { ++counts[static_cast<size_t>(flat / 27)]; });
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 3}));
}

TEST(ReviveEmpty, EdgeSizes) {
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}}) {
    const Positions revived =
        revive_empty(rng(), shape.numel(), Positions(shape), GroupIndex({}, shape));
    EXPECT_EQ(revived.count(), shape.numel());
  }
}

TEST(ReviveEmpty, GivesEachEmptyChannelAPositionAtSomeTap) {
  const Shape shape{4, 9, 1, 3};
  const Positions kept = Positions::of(shape, std::vector<int64_t>{0, 4, 27});  // channels 0 and 1
  const Positions revived = revive_empty(rng(), 100, kept, GroupIndex({}, shape), 3);
  EXPECT_EQ(revived.count(), 3 + 7);  // two empty rows meet two of seven empty channels
  EXPECT_EQ(dead_lines(MaskSet(shape, revived)), DeadLines{});
  std::vector<int64_t> taps(3);
  revived.for_each([&](int64_t flat) { ++taps[static_cast<size_t>(flat % 3)]; });
  EXPECT_GT(std::ranges::count_if(taps, [](int64_t n) { return n > 0; }), 1);
}

}  // namespace
}  // namespace lacuna::balanced_mask_test
