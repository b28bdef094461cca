// Selection and growth by score, over positions, against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/sparsity/masks/growth.hpp"
#include "lacuna/sparsity/masks/random_growth.hpp"
#include "lacuna/sparsity/masks/top_k.hpp"
#include "sparsity/masks/by_definition.h"
#include "throws.h"

namespace lacuna::top_k_test {
namespace {

struct Example {
  Shape shape;
  ScoreGroups groups;
};

std::vector<Example> examples() {
  return {{Shape{1, 1}, ScoreGroups::flat()},       {Shape{7, 13}, ScoreGroups::flat()},
          {Shape{64, 30}, ScoreGroups::rows(4)},    {Shape{24, 60}, ScoreGroups::columns(5)},
          {Shape{300, 41}, ScoreGroups::flat()},    {Shape{600, 512}, ScoreGroups::flat()},
          {Shape{6, 2, 10}, ScoreGroups::rows(2)},  {Shape{400, 8}, ScoreGroups::rows(400)},
          {Shape{520, 600}, ScoreGroups::rows(10)}, {Shape{97}, ScoreGroups::flat()}};
}

std::vector<float> random_scores(int64_t count, uint64_t seed) {
  const CounterRng rng(seed, "scores");
  std::vector<float> scores(static_cast<size_t>(count));
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(rng.bits(i) % 1701) - 850.0f;
    if (rng.bits(i) % 53 == 0) scores[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return scores;
}

BitMask random_mask(int64_t count, uint64_t seed, uint32_t one_in) {
  const CounterRng rng(seed, "mask");
  BitMask mask = BitMask::zeros(count);
  for (int64_t i = 0; i < count; ++i) {
    if (rng.bits(static_cast<uint64_t>(i)) % one_in == 0) mask.set(i);
  }
  return mask;
}

std::vector<float> at(const Positions& positions, const std::vector<float>& scores) {
  std::vector<float> own;
  positions.for_each([&](int64_t flat) { own.push_back(scores[static_cast<size_t>(flat)]); });
  return own;
}

TEST(PositionSelection, TopKAgreesWithItsDefinition) {
  for (const Example& e : examples()) {
    const GroupIndex groups(e.groups, e.shape);
    const BitMask mask = random_mask(e.shape.numel(), 1, 3);
    const Positions present = Positions::of(e.shape, mask);
    const std::vector<float> scores = random_scores(e.shape.numel(), 2);
    for (const int64_t k : {int64_t{0}, int64_t{1}, groups.size() / 5, groups.size()}) {
      const Positions kept = top_k(present, at(present, scores), k, groups);
      EXPECT_TRUE(kept.to_mask() == by_definition::top_k(scores, k, mask, groups))
          << e.shape.to_string() << k;
    }
  }
}

TEST(PositionSelection, TopKNeedsAScoreForEachPosition) {
  const Positions all = Positions::all(Shape{2, 3});
  const GroupIndex flat(ScoreGroups::flat(), Shape{2, 3});
  expect_throws<ShapeError>([&] { top_k(all, std::vector<float>(5), 1, flat); },
                            "among 6 positions needs as many scores, found 5");
}

TEST(PositionSelection, GrowMaximumAgreesWithItsDefinition) {
  for (const Example& e : examples()) {
    const GroupIndex groups(e.groups, e.shape);
    const BitMask mask = random_mask(e.shape.numel(), 3, 10);
    const Positions present = Positions::of(e.shape, mask);
    std::vector<float> scores = random_scores(e.shape.numel(), 4);
    for (float& score : scores) score = std::abs(score);
    const ScoreRows rows = rows_of(Tensor::from(e.shape, scores));
    for (const int64_t k : {int64_t{0}, int64_t{1}, groups.size() / 7, groups.size() / 3,
                            groups.size() - 1, groups.size()}) {
      EXPECT_TRUE(grow_maximum(rows, k, present, groups).to_mask() ==
                  by_definition::grow_maximum(scores, k, mask, groups))
          << e.shape.to_string() << ", " << k;
    }
  }
}

TEST(PositionSelection, GrowMaximumFindsLargeScoresThatASampleOfRowsMisses) {
  // The first guess of the threshold comes from some rows; here all others are smaller, and zero.
  const Shape shape{512, 64};
  std::vector<float> scores(static_cast<size_t>(shape.numel()));
  for (size_t row = 16; row < 512; row += 32) {
    for (size_t c = 0; c < 64; ++c) scores[row * 64 + c] = 1.0f + static_cast<float>(c);
  }
  const GroupIndex flat(ScoreGroups::flat(), shape);
  const BitMask none = BitMask::zeros(shape.numel());
  for (const int64_t k : {10, 500, 1100, 5000}) {
    EXPECT_TRUE(
        grow_maximum(rows_of(Tensor::from(shape, scores)), k, Positions(shape), flat).to_mask() ==
        by_definition::grow_maximum(scores, k, none, flat))
        << k;
  }
}

TEST(PositionSelection, GrowMaximumReachesItsCountWhereAllScoresAreNaN) {
  const Shape shape{3, 4};
  const std::vector<float> scores(12, std::numeric_limits<float>::quiet_NaN());
  const GroupIndex flat(ScoreGroups::flat(), shape);
  const Positions present = Positions::of(shape, std::vector<int64_t>{1, 5});
  EXPECT_EQ(grow_maximum(rows_of(Tensor::from(shape, scores)), 5, present, flat),
            Positions::of(shape, std::vector<int64_t>{0, 1, 2, 3, 5}));
}

TEST(PositionSelection, GrowRandomDrawsTheSameByMasksBitsAndHashSets) {
  for (const Example& e : examples()) {
    const GroupIndex groups(e.groups, e.shape);
    for (const uint32_t one_in : {1000u, 20u, 4u}) {
      const BitMask mask = random_mask(e.shape.numel(), 5, one_in);
      const Positions present = Positions::of(e.shape, mask);
      const CounterRng rng(7, "grow", one_in);
      for (const int64_t k : {groups.size() / 9, groups.size() / 2, groups.size() - 1}) {
        const BitMask expected = grow_random(rng, k, mask, groups);
        EXPECT_TRUE(grow_random(rng, k, present, groups).to_mask() == expected);
        if (k > groups.size() / 2) continue;
        for (const auto by : {internal::Membership::Bits, internal::Membership::HashSet}) {
          EXPECT_TRUE(internal::grow_random(rng, k, present, groups, by).to_mask() == expected)
              << e.shape.to_string() << ", " << k;
        }
      }
    }
  }
}

TEST(PositionSelection, GrowRandomWorksBeyondWhatBitsCanHold) {
  const Shape shape{1 << 20, 1 << 20};  // 2^40 positions
  const GroupIndex flat(ScoreGroups::flat(), shape);
  const Positions first = grow_random(CounterRng(1, "g"), 5000, Positions(shape), flat);
  EXPECT_EQ(first.count(), 5000);
  EXPECT_EQ(count_common(first, grow_random(CounterRng(2, "g"), 6000, first, flat)), 5000);
}

}  // namespace
}  // namespace lacuna::top_k_test
