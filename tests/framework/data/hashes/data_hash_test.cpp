// Hashes of arrays and of tokens. That every value of every dataset counts: stored_data_test.cpp.
#include "lacuna/framework/data/hashes/data_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "lacuna/framework/data/formats/token_sequence.hpp"

namespace lacuna::data_hash_test {
namespace {

template <class T>
std::vector<T> counted(size_t size) {
  std::vector<T> values(size);
  std::iota(values.begin(), values.end(), T{1});
  return values;
}

// Computed from the definition in other words: words of eight bytes, the lowest first; each step
// (hash ^ word), turned by 29 bits, times 0x9E3779B97F4A7C15.
TEST(DataHash, IsTheSameOnEveryMachine) {
  EXPECT_EQ(hash_values(counted<uint8_t>(11)), 0x193385ebc5acbe01u);
  EXPECT_EQ(hash_values(std::vector<float>{1.0f, -2.5f, 0.1f}), 0x661502a3fbaae63eu);
  EXPECT_EQ(hash_values(std::vector<int64_t>{7, -1}), 0x41cc28e0bc918dd5u);
  EXPECT_EQ(hash_values(std::vector<float>{}), 0xa970d7d6f6f46bccu);
}

template <class T>
class HashOf : public ::testing::Test {};
using Types = ::testing::Types<uint8_t, float, int64_t>;
TYPED_TEST_SUITE(HashOf, Types);

TYPED_TEST(HashOf, EachValueCountsUpToTheLimit) {
  for (const size_t size : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{100}}) {
    const std::vector<TypeParam> values = counted<TypeParam>(size);
    const HashLimits limits{.all_up_to = static_cast<int64_t>(size * sizeof(TypeParam)),
                            .samples = 1};
    std::set<uint64_t> hashes{hash_values(values, limits)};
    for (size_t i = 0; i < size; ++i) {
      std::vector<TypeParam> other = values;
      other[i] = TypeParam{120};
      hashes.insert(hash_values(other, limits));
    }
    EXPECT_EQ(hashes.size(), size + 1);
  }
}

TYPED_TEST(HashOf, SamplesCountBeyondIt) {
  constexpr size_t kSize = 101;
  constexpr HashLimits kLimits{.all_up_to = 100, .samples = 11};  // every tenth value
  const std::vector<TypeParam> values = counted<TypeParam>(kSize);
  const uint64_t hash = hash_values(values, kLimits);
  for (size_t i = 0; i < kSize; ++i) {
    std::vector<TypeParam> other = values;
    other[i] = TypeParam{120};
    EXPECT_EQ(hash_values(other, kLimits) != hash, i % 10 == 0) << i;
  }
  std::vector<TypeParam> longer = values;
  longer.insert(longer.begin() + 5, TypeParam{5});
  EXPECT_NE(hash_values(longer, kLimits), hash);
}

TYPED_TEST(HashOf, GoesOnFromWhatComesBefore) {
  const std::vector<TypeParam> values = counted<TypeParam>(5);
  const uint64_t before = hash_values(values);
  EXPECT_NE(hash_values(values, {}, before), before);
  EXPECT_NE(hash_values(values, {}, before), hash_values(values, {}, before + 1));
}

TEST(HashOfTokens, CountsEachUpToTheLimitAndRunsOfThemBeyondIt) {
  constexpr int64_t kSize = 1000;
  const std::vector<int64_t> ids = counted<int64_t>(kSize);
  const auto hash = [](std::vector<int64_t> all, const HashLimits& limits, int64_t begin = 0) {
    return hash_tokens(*tokens_in_memory(all), begin, static_cast<int64_t>(all.size()), limits);
  };
  constexpr HashLimits kAll{.all_up_to = 4 * kSize, .samples = 1};
  constexpr HashLimits kSome{.all_up_to = 4 * kSize - 1, .samples = 128};  // two runs of 64
  for (int64_t i = 0; i < kSize; ++i) {
    std::vector<int64_t> other = ids;
    other[static_cast<size_t>(i)] = 0;
    EXPECT_NE(hash(other, kAll), hash(ids, kAll)) << i;
    const bool counts = i < 64 || i >= kSize - 64;
    EXPECT_EQ(hash(other, kSome) != hash(ids, kSome), counts) << i;
  }
  EXPECT_NE(hash(ids, kAll, 1), hash(ids, kAll));
  std::vector<int64_t> longer = ids;
  longer.insert(longer.begin() + 500, 7);
  EXPECT_NE(hash(longer, kSome), hash(ids, kSome));
  EXPECT_EQ(hash(counted<int64_t>(40'000), {}), hash(counted<int64_t>(40'000), {}));
}

TEST(EvenlySpread, TakesFirstAndLastAndGoesUp) {
  for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{1} << 40}) {
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{7}}) {
      int64_t before = -1;
      for (int64_t i = 0; i < std::min(count, size); ++i) {
        const int64_t place = evenly_spread(i, count, size);
        EXPECT_GT(place, before);
        EXPECT_LT(place, size);
        before = place;
      }
      EXPECT_EQ(evenly_spread(0, count, size), 0);
      if (count > 1) {
        EXPECT_EQ(before, size - 1);
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::data_hash_test
