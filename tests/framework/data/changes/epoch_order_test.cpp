#include "lacuna/framework/data/changes/epoch_order.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/data/changes/permutation.hpp"

namespace lacuna::epoch_order_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> random_lengths(int64_t size) {
  const CounterRng rng(3, "lengths");
  std::vector<int32_t> lengths;
  for (int64_t i = 0; i < size; ++i) {
    lengths.push_back(static_cast<int32_t>(1 + rng.below(static_cast<uint64_t>(i), 100)));
  }
  return lengths;
}

std::vector<std::vector<int64_t>> batches(EpochOrder& order, int64_t epoch, int64_t count) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < count; ++i) {
    const auto batch = order.batch(epoch, i);
    all.emplace_back(batch.begin(), batch.end());
  }
  return all;
}

std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(EpochOrder, IsASeededPermutationWithoutLengths) {
  EpochOrder order({.size = 23, .batch_size = 5, .seed = 7});
  for (const int64_t epoch : {0, 3}) {
    EXPECT_EQ(joined(batches(order, epoch, 5)),
              seeded_permutation(23, 7, "loader", static_cast<uint64_t>(epoch)));
  }
}

TEST(EpochOrder, HoldsEachExampleOnceWithLengths) {
  const auto lengths = random_lengths(1003);
  EpochOrder order({.size = 1003, .batch_size = 4, .lengths = lengths});
  std::set<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> all = joined(batches(order, epoch, 251));
    epochs.insert(all);
    std::ranges::sort(all);
    for (int64_t i = 0; i < 1003; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
  }
  EXPECT_EQ(epochs.size(), 3u);
}

// By hand: shuffled, cut into runs of 50 batches, sorted, batches shuffled.
TEST(EpochOrder, SortsRunsOfFiftyBatchesAndShufflesThem) {
  const int64_t size = 2 * 73 + 1;  // 73 batches of 2: a run of 50 and one of 23; and one example
  const auto lengths = random_lengths(size);
  const auto by_length = [&](int64_t a, int64_t b) {
    return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
  };
  std::vector<int64_t> shuffled = seeded_permutation(size, 11, "loader", 2);
  std::stable_sort(shuffled.begin(), shuffled.begin() + 100, by_length);
  std::stable_sort(shuffled.begin() + 100, shuffled.begin() + 146, by_length);
  std::vector<int64_t> expected;
  for (const int64_t batch : seeded_permutation(73, 11, "loader.batches", 2)) {
    expected.push_back(shuffled[static_cast<size_t>(2 * batch)]);
    expected.push_back(shuffled[static_cast<size_t>(2 * batch + 1)]);
  }
  expected.push_back(shuffled.back());
  EpochOrder order({.size = size, .batch_size = 2, .seed = 11, .lengths = lengths});
  EXPECT_EQ(joined(batches(order, 2, 74)), expected);
}

TEST(EpochOrder, PadsLittleWithLengths) {
  const auto lengths = random_lengths(3200);
  const auto padded = [&](std::span<const int32_t> known) {
    EpochOrder order({.size = 3200, .batch_size = 32, .lengths = known});
    int64_t tokens = 0;
    for (const auto& batch : batches(order, 0, 100)) {
      int64_t longest = 0;
      for (const int64_t i : batch) {
        longest = std::max<int64_t>(longest, lengths[static_cast<size_t>(i)]);
      }
      tokens += 32 * longest;
    }
    return tokens;
  };
  const int64_t least = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  EXPECT_LT(padded(lengths), least + least / 20);
  EXPECT_GT(padded({}), least + least / 2);  // of lengths up to 100, a batch has a long one
}

TEST(EpochOrder, IsTheDatasetsOwnWithoutShuffling) {
  const std::vector<int32_t> lengths = {9, 1, 5};
  EpochOrder order({.size = 3, .batch_size = 2, .shuffle = false, .lengths = lengths});
  EXPECT_THAT(batches(order, 4, 2), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

// Draws of one example have numbers of their own, so that each may be changed in another way.
TEST(EpochOrder, NumbersTheDrawsOfABalancedEpoch) {
  const std::vector<int64_t> labels = {0, 0, 0, 0, 0, 0, 0, 1, 1, 0};
  EpochOrder order({.size = 10, .batch_size = 4, .labels = labels});
  for (const int64_t epoch : {0, 1}) {
    std::set<int64_t> seen;
    std::map<int64_t, int64_t> draws;
    for (int64_t batch = 0; batch < 3; ++batch) {
      const auto examples = batches(order, epoch, 3)[static_cast<size_t>(batch)];
      const auto places = order.places(epoch, batch);
      ASSERT_EQ(places.size(), examples.size());
      for (size_t i = 0; i < examples.size(); ++i) {
        EXPECT_EQ(places[i], examples[i] + 10 * draws[examples[i]]++);
        EXPECT_TRUE(seen.insert(places[i]).second);
      }
    }
    EXPECT_EQ(draws[7] + draws[8], 5);
  }
  EpochOrder plain({.size = 10, .batch_size = 4});
  EXPECT_TRUE(std::ranges::equal(plain.places(0, 1), batches(plain, 0, 2)[1]));
}

TEST(EpochOrder, GivesAnyBatchAtAnyTime) {
  const auto lengths = random_lengths(500);
  EpochOrder order({.size = 500, .batch_size = 3, .lengths = lengths});
  const auto first = batches(order, 0, 167);
  EpochOrder other({.size = 500, .batch_size = 3, .lengths = lengths});
  other.batch(5, 1);
  for (const int64_t batch : {166, 0, 93}) {
    const auto found = other.batch(0, batch);
    EXPECT_EQ(std::vector<int64_t>(found.begin(), found.end()), first[static_cast<size_t>(batch)]);
  }
}

TEST(EpochOrder, DrawsFromMoreExamplesThanMemoryHoldsAnOrderOf) {
  const int64_t size = int64_t{3} << 40;
  EpochOrder order({.size = size, .batch_size = 1000, .seed = 1});
  const auto first = batches(order, 0, 3);
  std::set<int64_t> seen;
  int64_t in_lower_half = 0;
  for (const int64_t index : joined(first)) {
    ASSERT_GE(index, 0);
    ASSERT_LT(index, size);
    seen.insert(index);
    in_lower_half += index < size / 2 ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), 3000u);
  EXPECT_NEAR(static_cast<double>(in_lower_half), 1500, 140);  // five standard deviations
  EXPECT_NE(batches(order, 1, 3), first);
  EXPECT_EQ(batches(order, 0, 3), first);
  EpochOrder at_the_end({.size = size + 7, .batch_size = 10});
  EXPECT_EQ(at_the_end.batch(0, (size + 7) / 10).size(), static_cast<size_t>((size + 7) % 10));
}

TEST(ScatteredOrder, HoldsEachNumberOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097}) {
    for (const uint64_t stream : {0, 1}) {
      const ScatteredOrder order(size, 5, "order", stream);
      std::set<int64_t> seen;
      for (int64_t i = 0; i < size; ++i) seen.insert(order.at(i));
      ASSERT_EQ(seen.size(), static_cast<size_t>(size));
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

TEST(ScatteredOrder, DependsOnSeedNameAndStream) {
  const auto first = [](const ScatteredOrder& order) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < 20; ++i) numbers.push_back(order.at(i));
    return numbers;
  };
  std::set<std::vector<int64_t>> orders = {first({1000, 0, "a", 0}), first({1000, 1, "a", 0}),
                                           first({1000, 0, "b", 0}), first({1000, 0, "a", 1})};
  EXPECT_EQ(orders.size(), 4u);
}

}  // namespace
}  // namespace lacuna::epoch_order_test
