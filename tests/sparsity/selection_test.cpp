#include "lacuna/sparsity/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "throws.h"

namespace lacuna {
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

/// The definition: sort allowed positions by (score descending, index ascending), take the first k.
BitMask top_k_by_sorting(const std::vector<float>& scores, int64_t k, const BitMask& allowed) {
  std::vector<int64_t> order;
  allowed.for_each([&](int64_t i) { order.push_back(i); });
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  BitMask mask = BitMask::zeros(allowed.size());
  for (int64_t i = 0; i < std::min<int64_t>(k, static_cast<int64_t>(order.size())); ++i) {
    mask.set(order[static_cast<size_t>(i)]);
  }
  return mask;
}

TEST(TopK, AgreesWithSortingForManySizesAndCounts) {
  for (const int64_t size : {0, 1, 2, 31, 64, 97, 300}) {
    const std::vector<float> scores = random_scores(size, static_cast<uint64_t>(size));
    const BitMask allowed = random_mask(size, 5);
    for (const int64_t k : {int64_t{0}, int64_t{1}, size / 3, size, size + 5}) {
      EXPECT_TRUE(top_k(scores, k, allowed, flat(size)) == top_k_by_sorting(scores, k, allowed))
          << size << ", " << k;
    }
  }
}

TEST(TopK, TiesGoToTheLowerIndex) {
  const std::vector<float> scores{1, 2, 1, 2, 1};
  EXPECT_EQ(top_k(scores, 3).to_bytes(), (std::vector<uint8_t>{1, 1, 0, 1, 0}));
  const std::vector<float> zeros{0.0f, -0.0f, 0.0f};
  EXPECT_EQ(top_k(zeros, 2).to_bytes(), (std::vector<uint8_t>{1, 1, 0}));
}

TEST(TopK, NaNRanksLowestAndInfinityHighest) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> scores{std::nanf(""), -inf, 3, inf};
  EXPECT_EQ(top_k(scores, 3).to_bytes(), (std::vector<uint8_t>{0, 1, 1, 1}));
}

TEST(TopK, NeverKeepsWhatTheMaskExcludes) {
  const std::vector<float> scores{0, 9, 0, 9};  // the active weights are exactly zero
  const BitMask allowed = BitMask::from_bytes(std::vector<uint8_t>{1, 0, 1, 0});
  EXPECT_TRUE(top_k(scores, 2, allowed, flat(4)) == allowed);
}

TEST(TopK, GroupsCompeteSeparately) {
  const std::vector<float> scores{9, 8, 1, 2,   //
                                  7, 6, 3, 4};  // [2, 4]
  const Shape shape{2, 4};
  const BitMask all = BitMask::ones(8);
  EXPECT_EQ(top_k(scores, 1, all, GroupIndex(ScoreGroups::rows(2), shape)).to_bytes(),
            (std::vector<uint8_t>{1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(top_k(scores, 1, all, GroupIndex(ScoreGroups::columns(2), shape)).to_bytes(),
            (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 1}));
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
    const BitMask mask = random_mask(size, seed);
    const int64_t kept = mask.count() / 2;
    const BitMask dropped = drop_minimum(random_scores(size, seed), kept, mask, flat(size));
    EXPECT_EQ(dropped.count(), kept);
    dropped.for_each([&](int64_t i) { EXPECT_TRUE(mask.test(i)); });
    const CounterRng rng(seed, "grow");
    for (const BitMask& grown :
         {grow_maximum(random_scores(size, seed + 100), mask.count(), dropped, flat(size)),
          grow_random(rng, mask.count(), dropped, flat(size))}) {
      EXPECT_EQ(grown.count(), mask.count());
      dropped.for_each([&](int64_t i) { EXPECT_TRUE(grown.test(i)); });
    }
  }
}

TEST(GrowMaximum, LeavesAFullEnoughMaskAlone) {
  const BitMask mask = random_mask(40, 1);
  EXPECT_TRUE(grow_maximum(random_scores(40, 1), mask.count() - 3, mask, flat(40)) == mask);
  EXPECT_TRUE(grow_random(CounterRng(1, "g"), 0, mask, flat(40)) == mask);
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
  ScoreGroups::columns(4).require_fit("w", Shape{6, 2, 4});
}

}  // namespace
}  // namespace lacuna
