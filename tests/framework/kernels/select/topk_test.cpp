#include "lacuna/framework/kernels/select/topk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna::topk_test {
namespace {

/// Few distinct values, so that there are ties, with NaN and infinities among them.
std::vector<float> scores_with_ties(int64_t count, uint64_t seed) {
  const CounterRng rng(seed, "scores");
  std::vector<float> scores(static_cast<size_t>(count));
  for (size_t i = 0; i < scores.size(); ++i) {
    const uint32_t word = rng.bits(i);
    scores[i] = static_cast<float>(word % 41) - 20.0f;
    if (word % 97 == 0) scores[i] = std::numeric_limits<float>::quiet_NaN();
    if (word % 101 == 0) scores[i] = -std::numeric_limits<float>::infinity();
  }
  return scores;
}

std::vector<float> distinct_scores(int64_t count, uint64_t seed) {
  const CounterRng rng(seed, "distinct");
  std::vector<float> scores(static_cast<size_t>(count));
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = rng.uniform(i) - 0.5f;
  return scores;
}

/// The definition: by |score| descending, then by index.
std::vector<int64_t> by_sorting(const std::vector<float>& scores, int64_t k) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(scores[static_cast<size_t>(a)]) > std::abs(scores[static_cast<size_t>(b)]);
  });
  order.resize(static_cast<size_t>(std::min<int64_t>(k, static_cast<int64_t>(order.size()))));
  std::ranges::sort(order);
  return order;
}

std::vector<int64_t> collected(const std::vector<float>& scores, int64_t k, size_t piece,
                               float floor = -1.0f) {
  TopKCollector collector(k, floor);
  for (size_t begin = 0; begin < scores.size(); begin += piece) {
    const size_t count = std::min(piece, scores.size() - begin);
    collector.offer(std::span(scores).subspan(begin, count), static_cast<int64_t>(begin));
  }
  return collector.take();
}

TEST(TopKCollector, AgreesWithSortingHoweverTheStreamIsCut) {
  for (const int64_t size : {0, 1, 17, 1000, 4096, 4097, 60'013}) {
    for (const auto& scores : {scores_with_ties(size, 1), distinct_scores(size, 2)}) {
      for (const int64_t k : {int64_t{0}, int64_t{1}, size / 50, size / 3, size, size + 9}) {
        const std::vector<int64_t> expected = by_sorting(scores, k);
        for (const size_t piece : {size_t{61}, size_t{5000}, size_t{100'000}}) {
          ASSERT_EQ(collected(scores, k, piece), expected) << size << ", " << k << ", " << piece;
        }
      }
    }
  }
}

TEST(TopKCollector, ShrinksManyTimesOnARisingStream) {
  std::vector<float> rising(200'003);
  std::iota(rising.begin(), rising.end(), 0.0f);
  EXPECT_EQ(collected(rising, 100, 7000), by_sorting(rising, 100));
}

TEST(TopKCollector, OfEqualScoresTheFirstStay) {
  const std::vector<float> equal(100'000, 3.0f);
  std::vector<int64_t> first(50);
  std::iota(first.begin(), first.end(), int64_t{0});
  EXPECT_EQ(collected(equal, 50, 997), first);
}

TEST(TopKCollector, FloorBelowTheKthLargestChangesNothing) {
  const std::vector<float> scores = distinct_scores(30'000, 3);
  const std::vector<int64_t> expected = by_sorting(scores, 300);
  EXPECT_EQ(collected(scores, 300, 4000, 0.45f), expected);
  TopKCollector too_high(300, 0.499f);
  too_high.offer(scores, 0);
  EXPECT_LT(too_high.size(), 300);  // which the caller sees
}

}  // namespace
}  // namespace lacuna::topk_test
