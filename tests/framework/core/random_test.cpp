#include "lacuna/framework/core/random.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

namespace lacuna::random_test {
namespace {

using testing::ElementsAre;

TEST(Philox, GivesThePublishedVectors) {
  // Random123's kat_vectors for philox4x32-10.
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const uint32_t ones = 0xffffffffu;
  EXPECT_THAT(philox({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(
      philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(HashName, IsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8u);
}

TEST(CounterRng, DependsOnSeedNameStreamAndIndexAlone) {
  const CounterRng rng(1, "fc1.weight", 3), same(1, "fc1.weight", 3);
  EXPECT_EQ(rng.bits(12345), same.bits(12345));
  std::set<uint32_t> words;
  for (const CounterRng& other :
       {rng, CounterRng(2, "fc1.weight", 3), CounterRng(1, "fc2.weight", 3),
        CounterRng(1, "fc1.weight", 4), CounterRng(uint64_t{1} << 32, "fc1.weight", 3),
        CounterRng(1, "fc1.weight", uint64_t{1} << 32)}) {
    words.insert(other.bits(0));
  }
  EXPECT_EQ(words.size(), 6u);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(rng.bits(i), rng.block(i / 4)[i % 4]);
}

TEST(CounterRng, UniformIsUniform) {
  const CounterRng rng(7, "uniform");
  constexpr int kCount = 40000, kBins = 16;
  std::array<int, kBins> bins{};
  double sum = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const float value = rng.uniform(i);
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += value;
    ++bins[static_cast<size_t>(value * kBins)];
  }
  // Five standard deviations: of the mean 0.29/√n, of a bin's count √(n/16).
  EXPECT_NEAR(sum / kCount, 0.5, 5 * 0.29 / std::sqrt(kCount));
  for (const int count : bins) EXPECT_NEAR(count, kCount / kBins, 5 * std::sqrt(kCount / kBins));
}

TEST(CounterRng, NormalHasMeanZeroAndVarianceOne) {
  const CounterRng rng(7, "normal");
  constexpr int kCount = 20000;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double value = rng.normal(i);
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 5 * std::sqrt(2.0 / kCount));
}

TEST(CounterRng, BelowStaysBelowAndReachesAll) {
  const CounterRng rng(7, "below");
  std::array<int, 7> counts{};
  for (uint64_t i = 0; i < 7000; ++i) ++counts.at(rng.below(i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000));
  EXPECT_EQ(rng.below(0, 1), 0u);
  EXPECT_LT(rng.below(1, UINT64_MAX), UINT64_MAX);
}

}  // namespace
}  // namespace lacuna::random_test
