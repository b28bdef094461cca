#include "lacuna/framework/kernels/select/kth_largest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna::kth_largest_test {
namespace {

struct Case {
  std::string name;
  float (*score)(size_t i, uint32_t word);  // of element i, from a random word
};

// What a sample is true to, and what deceives it.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"uniform", [](size_t, uint32_t word) { return static_cast<float>(word) * 0x1.0p-32f; }},
      {"either sign", [](size_t, uint32_t w) { return static_cast<float>(w) * 0x1.0p-31f - 1.0f; }},
      {"few values",
       [](size_t, uint32_t word) {
         if (word % 97 == 0) return std::numeric_limits<float>::quiet_NaN();
         if (word % 101 == 0) return -std::numeric_limits<float>::infinity();
         return static_cast<float>(word % 41) - 20.0f;
       }},
      {"all equal", [](size_t, uint32_t) { return 0.25f; }},
      {"all NaN", [](size_t, uint32_t) { return std::numeric_limits<float>::quiet_NaN(); }},
      {"rising", [](size_t i, uint32_t) { return static_cast<float>(i); }},
      {"one large in 64",
       [](size_t i, uint32_t) { return i % 64 == 7 ? 1.0f + static_cast<float>(i) : 0.0f; }},
      {"agreeing in their first bits",
       [](size_t, uint32_t w) { return 1.0f + static_cast<float>(w >> 9) * 0x1.0p-35f; }},
      {"large at the end",
       [](size_t i, uint32_t w) { return i < 65000 ? 0.0f : static_cast<float>(w); }},
  };
  return all;
}

std::vector<float> scores_of(const Case& c, int64_t size) {
  const CounterRng rng(4, c.name);
  std::vector<float> scores(static_cast<size_t>(size));
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = c.score(i, rng.bits(i));
  return scores;
}

class KthLargestTest : public testing::TestWithParam<int64_t> {};

TEST_P(KthLargestTest, AgreesWithSorting) {
  for (const Case& c : cases()) {
    const std::vector<float> scores = scores_of(c, GetParam());
    const auto size = static_cast<int64_t>(scores.size());
    std::vector<uint32_t> keys;
    for (const float score : scores) keys.push_back(order_key(score));
    std::vector<uint32_t> sorted = keys;
    std::ranges::sort(sorted, std::greater<>());
    for (const int64_t k : {int64_t{1}, size / 100 + 1, (size + 1) / 2, size - size / 50, size}) {
      const uint32_t key = sorted[static_cast<size_t>(k - 1)];
      const KthLargest expected{
          key, k - std::ranges::count_if(keys, [&](uint32_t other) { return other > key; })};
      EXPECT_EQ(kth_largest(keys, k), expected) << c.name << ", " << k;
      EXPECT_EQ(kth_largest(scores, k), expected) << c.name << ", " << k;
    }
  }
}

// By key descending, then by index.
TEST_P(KthLargestTest, MaskIsOfTheLargestAndOfEqualOnesTheFirst) {
  for (const Case& c : cases()) {
    const std::vector<float> scores = scores_of(c, GetParam());
    std::vector<int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](int64_t i) { return order_key(scores[static_cast<size_t>(i)]); });
    const auto size = static_cast<int64_t>(scores.size());
    for (const int64_t k : {int64_t{-1}, int64_t{0}, size / 7, size / 2, size, size + 5}) {
      BitMask expected = BitMask::zeros(size);
      for (int64_t i = 0; i < std::min(k, size); ++i) expected.set(order[static_cast<size_t>(i)]);
      EXPECT_EQ(largest_mask(scores, k), expected) << c.name << ", " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, KthLargestTest,
                         testing::Values(1, 2, 5, 63, 1000, 1025, 9973, 70000));

TEST(OrderKey, OrdersLikeTheFloatsWithNaNLowest) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending{std::nanf(""), -inf, -2.0f, -1e-40f, 0.0f, 1e-40f, 3.0f, inf};
  for (size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(order_key(ascending[i - 1]), order_key(ascending[i])) << i;
  }
  EXPECT_EQ(order_key(-0.0f), order_key(0.0f));
  EXPECT_EQ(order_key(-std::nanf("")), 0u);
}

}  // namespace
}  // namespace lacuna::kth_largest_test
