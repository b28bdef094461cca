#include "lacuna/sparsity/masks/mask_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lacuna/sparsity/masks/random_growth.hpp"
#include "lacuna/sparsity/options/counting.hpp"
#include "sparsity/masks/by_definition.h"
#include "throws.h"

namespace lacuna::mask_selector_test {
namespace {

std::vector<float> random_scores(int64_t count, uint64_t seed) {
  const CounterRng rng(seed, "scores");
  std::vector<float> scores(static_cast<size_t>(count));
  // Few distinct values, so that there are ties.
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(rng.bits(i) % 17) - 8;
  return scores;
}

BitMask random_mask(int64_t count, uint64_t seed) {
  const CounterRng rng(seed, "mask");
  BitMask mask = BitMask::zeros(count);
  for (int64_t i = 0; i < count; ++i) {
    if (rng.bits(static_cast<uint64_t>(i)) % 2 == 0) mask.set(i);
  }
  return mask;
}

GroupIndex flat(int64_t count) { return GroupIndex(ScoreGroups::flat(), Shape{count}); }

// Scores of the positions of a set, as the selections take them.
std::vector<float> scores_of(const MaskSet& mask, const std::vector<float>& scores) {
  std::vector<float> own;
  mask.positions().for_each([&](int64_t i) { own.push_back(scores[static_cast<size_t>(i)]); });
  return own;
}

MaskSelector selector(int64_t count) { return MaskSelector({}, {}, Shape{count}); }

std::vector<uint8_t> largest(const std::vector<float>& scores, int64_t count) {
  const Shape shape{static_cast<int64_t>(scores.size())};
  return MaskSelector({}, {}, shape).keep(MaskSet::all(shape), scores, count).bits().to_bytes();
}

TEST(Keep, AgreesWithSortingForManySizesAndCounts) {
  for (const int64_t size : {0, 1, 2, 31, 64, 97, 300}) {
    const std::vector<float> scores = random_scores(size, static_cast<uint64_t>(size));
    const MaskSet allowed(Shape{size}, random_mask(size, 5));
    for (const int64_t k : {int64_t{0}, int64_t{1}, size / 3, size, size + 5}) {
      EXPECT_EQ(selector(size).keep(allowed, scores_of(allowed, scores), k).bits(),
                by_definition::top_k(scores, k, allowed.bits(), flat(size)))
          << size << ", " << k;
    }
  }
}

TEST(Keep, TiesGoToTheLowerIndex) {
  EXPECT_EQ(largest({1, 2, 1, 2, 1}, 3), (std::vector<uint8_t>{1, 1, 0, 1, 0}));
  EXPECT_EQ(largest({0.0f, -0.0f, 0.0f}, 2), (std::vector<uint8_t>{1, 1, 0}));
}

TEST(Keep, NaNRanksLowestAndInfinityHighest) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(largest({std::nanf(""), -inf, 3, inf}, 3), (std::vector<uint8_t>{0, 1, 1, 1}));
}

TEST(Keep, NeverKeepsWhatTheMaskExcludes) {
  const MaskSet allowed(Shape{4}, BitMask::from_bytes(std::vector<uint8_t>{1, 0, 1, 0}));
  // The active weights are exactly zero.
  EXPECT_EQ(selector(4).keep(allowed, std::vector<float>{0, 0}, 2), allowed);
}

TEST(Keep, GroupsCompeteSeparately) {
  const std::vector<float> scores{9, 8, 1, 2,   //
                                  7, 6, 3, 4};  // [2, 4]
  const Shape shape{2, 4};
  const auto kept = [&](const ScoreGroups& groups) {
    return MaskSelector(groups, {}, shape).keep(MaskSet::all(shape), scores, 2).bits().to_bytes();
  };
  EXPECT_EQ(kept(ScoreGroups::rows(2)), (std::vector<uint8_t>{1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(kept(ScoreGroups::columns(2)), (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Selector, RefusesNegativeCounts) {
  const MaskSet all = MaskSet::all(Shape{4});
  const MaskSelector of_four = selector(4);
  expect_throws<ShapeError>(
      [&] {
        of_four.keep(all, std::vector<float>{1, 2, 3, 4}, -1);
      },
      "a mask cannot have -1 positions");
  expect_throws<ShapeError>([&] { of_four.grow_random(CounterRng(0, "grown"), -5, all); },
                            "a mask cannot have -5 positions");
  const MaskSelector of_cells({}, PatternShape::nm(2, 4), Shape{1, 4});
  const std::vector<float> scores{1, 2, 3, 4};
  expect_throws<ShapeError>(
      [&] {
        of_cells.prune_gradually(MaskSet::all(Shape{1, 4}), scores, -1);
      },
      "a mask cannot have -1 positions");
  expect_throws<ShapeError>(
      [&] {
        of_cells.largest(Tensor::full({1, 4}, 1.0f), -1);
      },
      "a mask cannot have -1 positions");
}

TEST(Counting, IsInFloat32AndTruncated) {
  EXPECT_EQ(target_nnz(0.9f, 1000), static_cast<int64_t>((1.0f - 0.9f) * 1000.0f));
  EXPECT_EQ(target_nnz(0.0f, 7), 7);
  EXPECT_EQ(target_nnz(1.0f, 7), 0);
  EXPECT_EQ(target_nnz(-0.5f, 7), 7);  // clamped
  EXPECT_EQ(target_nnz(1.5f, 7), 0);
  EXPECT_EQ(target_nnz(0.0f, (int64_t{1} << 24) + 1), int64_t{1} << 24);
  EXPECT_EQ(kept_after_drop(0.3f, 10), 7);
  EXPECT_EQ(kept_after_drop(0.3f, 10, 2), 3);
  EXPECT_EQ(kept_after_drop(1.0f, 10), 0);
}

TEST(DropAndGrow, CountsAreExactAndKeptIsInsideTheMask) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const int64_t size = 50 + static_cast<int64_t>(seed) * 13;
    const MaskSelector select = selector(size);
    const MaskSet mask(Shape{size}, random_mask(size, seed));
    const int64_t count = mask.count() / 2;
    const MaskSet kept = select.keep(mask, scores_of(mask, random_scores(size, seed)), count);
    EXPECT_EQ(kept.count(), count);
    EXPECT_EQ(count_common(kept, mask), count);
    const ScoreRows scores = rows_of(Tensor::from(Shape{size}, random_scores(size, seed + 100)));
    for (const MaskSet& grown : {select.grow_maximum(scores, mask.count(), kept),
                                 select.grow_random(CounterRng(seed, "g"), mask.count(), kept)}) {
      EXPECT_EQ(grown.count(), mask.count());
      EXPECT_EQ(count_common(grown, kept), count);
    }
  }
}

TEST(Grow, LeavesAFullEnoughMaskAlone) {
  const MaskSet mask(Shape{40}, random_mask(40, 1));
  const ScoreRows scores = rows_of(Tensor::from(Shape{40}, random_scores(40, 1)));
  EXPECT_EQ(selector(40).grow_maximum(scores, mask.count() - 3, mask), mask);
  EXPECT_EQ(selector(40).grow_random(CounterRng(1, "g"), 0, mask), mask);
}

TEST(GrowRandom, IsUniformOverTheFreePositions) {
  // 2 of 10 free positions, 4000 times: each is drawn 800 times, give or take 5 deviations (25).
  BitMask start = BitMask::zeros(15);
  for (int64_t i = 0; i < 5; ++i) start.set(i * 3);
  std::vector<int> counts(15);
  for (uint64_t stream = 0; stream < 4000; ++stream) {
    grow_random(CounterRng(1, "uniform", stream), 7, start, flat(15)).for_each([&](int64_t i) {
      ++counts[static_cast<size_t>(i)];
    });
  }
  for (int64_t i = 0; i < 15; ++i) {
    if (start.test(i)) {
      EXPECT_EQ(counts[static_cast<size_t>(i)], 4000);
    } else {
      EXPECT_NEAR(counts[static_cast<size_t>(i)], 800, 127);
    }
  }
}

TEST(GrowRandom, NearlyFullTargetsAndGroups) {
  const GroupIndex groups(ScoreGroups::rows(3), Shape{3, 10});
  for (int64_t per_group = 0; per_group <= 10; ++per_group) {
    const BitMask grown = grow_random(CounterRng(2, "g"), per_group, BitMask::zeros(30), groups);
    for (int64_t row = 0; row < 3; ++row) {
      int64_t count = 0;
      for (int64_t j = 0; j < 10; ++j) count += grown.test(row * 10 + j) ? 1 : 0;
      EXPECT_EQ(count, per_group);
    }
  }
}

TEST(ScoreGroups, RefuseWhatTheyDoNotDivide) {
  expect_throws<ShapeError>(
      [] {
        ScoreGroups::rows(4).require_fit("fc1.weight", Shape{6, 8});
      },
      "'fc1.weight' of shape [6, 8] has 6 rows, which balance_out_groups = "
      "4 does not divide");
  expect_throws<ShapeError>(
      [] {
        ScoreGroups::columns(3).require_fit("w", Shape{6, 8});
      },
      "has 8 columns, which balance_in_groups = 3");
  expect_throws<ShapeError>(
      [] {
        ScoreGroups::columns(4).require_fit("w", Shape{6, 2, 4});
      },
      "'w' of shape [6, 2, 4] has 2 input channels, which balance_in_groups = 4 does not divide");
  ScoreGroups::columns(2).require_fit("w", Shape{6, 2, 3});
}

}  // namespace
}  // namespace lacuna::mask_selector_test
