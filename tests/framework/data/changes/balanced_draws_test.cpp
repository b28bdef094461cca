#include "lacuna/framework/data/changes/balanced_draws.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/changes/epoch_order.hpp"
#include "throws.h"

namespace lacuna::balanced_draws_test {
namespace {

// 20 examples of class 0, 5 of class 1, 2 of class 4; there is none of 2 and 3.
std::vector<int64_t> unequal_labels() {
  std::vector<int64_t> labels(27, 0);
  for (const size_t i : {3u, 9u, 10u, 16u, 26u}) labels[i] = 1;
  for (const size_t i : {0u, 21u}) labels[i] = 4;
  return labels;
}

std::map<int64_t, int64_t> counts(const std::vector<int64_t>& draws) {
  std::map<int64_t, int64_t> times;
  for (const int64_t i : draws) ++times[i];
  return times;
}

TEST(BalancedDraws, GiveEachClassAsManyAndItsExamplesEquallyOften) {
  const std::vector<int64_t> labels = unequal_labels();
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const std::vector<int64_t> draws = balanced_draws(labels, 7, epoch);
    ASSERT_EQ(draws.size(), labels.size());
    std::map<int64_t, int64_t> of_class;
    for (const int64_t i : draws) ++of_class[labels[static_cast<size_t>(i)]];
    EXPECT_EQ(of_class, (std::map<int64_t, int64_t>{{0, 9}, {1, 9}, {4, 9}}));
    const std::map<int64_t, int64_t> times = counts(draws);
    for (const size_t i : {3u, 9u, 10u, 16u, 26u}) {  // 9 draws of 5 examples
      EXPECT_GE(times.at(static_cast<int64_t>(i)), 1);
      EXPECT_LE(times.at(static_cast<int64_t>(i)), 2);
    }
    EXPECT_EQ(times.at(0) + times.at(21), 9);
    EXPECT_EQ(std::abs(times.at(0) - times.at(21)), 1);
    for (const auto& [example, count] : times) {
      const bool is_of_many = labels[static_cast<size_t>(example)] == 0;
      EXPECT_LE(count, is_of_many ? 1 : 5);  // 9 draws of 20 examples, of 5, and of 2
    }
  }
}

TEST(BalancedDraws, AreAPureFunctionOfSeedAndEpoch) {
  const std::vector<int64_t> labels = unequal_labels();
  EXPECT_EQ(balanced_draws(labels, 7, 2), balanced_draws(labels, 7, 2));
  EXPECT_NE(balanced_draws(labels, 7, 2), balanced_draws(labels, 7, 3));
  EXPECT_NE(balanced_draws(labels, 7, 2), balanced_draws(labels, 8, 2));
}

TEST(BalancedDraws, GiveWhatIsLeftToOtherClassesInOtherEpochs) {
  const std::vector<int64_t> labels{0, 0, 1, 1, 2, 2, 2};
  std::set<int64_t> favoured;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::map<int64_t, int64_t> of_class;
    for (const int64_t i : balanced_draws(labels, 1, epoch)) {
      ++of_class[labels[static_cast<size_t>(i)]];
    }
    for (const auto& [label, count] : of_class) {
      EXPECT_THAT(count, testing::AnyOf(2, 3));
      if (count == 3) favoured.insert(label);
    }
  }
  EXPECT_EQ(favoured.size(), 3u);
}

TEST(BalancedDraws, LeaveOutLabelsThatDoNotCount) {
  std::vector<int64_t> labels = unequal_labels();
  std::ranges::replace(labels, 0, kIgnoredLabel);
  for (const int64_t i : balanced_draws(labels, 7, 0)) {
    EXPECT_NE(labels[static_cast<size_t>(i)], kIgnoredLabel);
  }
  const std::vector<int64_t> none(3, kIgnoredLabel);
  expect_throws<DataError>([&] { balanced_draws(none, 7, 0); }, "balanced has no example to draw");
}

TEST(EpochOrder, ShufflesBalancedDrawsAndSortsThemByLength) {
  const std::vector<int64_t> labels = unequal_labels();
  std::vector<int32_t> lengths(labels.size());
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<int32_t>(i * 7 % 10);
  for (const bool is_sorted : {false, true}) {
    OrderOptions options{.size = 27, .batch_size = 4, .seed = 3, .labels = labels};
    if (is_sorted) options.lengths = lengths;
    EpochOrder order(options);
    std::vector<int64_t> drawn;
    for (int64_t batch = 0; batch < 7; ++batch) {
      const auto part = order.batch(2, batch);
      drawn.insert(drawn.end(), part.begin(), part.end());
      if (!is_sorted || batch == 6) continue;
      EXPECT_TRUE(std::ranges::is_sorted(
          part, {}, [&](int64_t i) { return lengths[static_cast<size_t>(i)]; }));
    }
    const std::vector<int64_t> expected = balanced_draws(labels, 3, 2);
    EXPECT_NE(drawn, expected);
    EXPECT_THAT(drawn, testing::UnorderedElementsAreArray(expected));
  }
}

}  // namespace
}  // namespace lacuna::balanced_draws_test
