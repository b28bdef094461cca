#include "lacuna/framework/core/bit_mask.h"

#include <gmock/gmock.h>

#include "throws.h"

namespace lacuna::bit_mask_test {
namespace {

TEST(BitMask, HasItsSizeAndNoBitsPastTheEnd) {
  for (const int64_t size : {0, 1, 63, 64, 65, 127, 128, 129}) {
    const BitMask ones = BitMask::ones(size), zeros = BitMask::zeros(size);
    EXPECT_EQ(ones.size(), size);
    EXPECT_EQ(ones.count(), size);
    EXPECT_EQ(zeros.count(), 0);
    EXPECT_EQ(static_cast<int64_t>(ones.words().size()), (size + 63) / 64);
  }
  EXPECT_EQ(BitMask::ones(65).words()[1], 1u);
  EXPECT_EQ(BitMask().size(), 0);
}

TEST(BitMask, SetsResetsAndVisitsInOrder) {
  BitMask mask = BitMask::zeros(131);
  for (const int64_t i : {130, 0, 64, 63}) mask.set(i);
  mask.set(7);
  mask.reset(7);
  EXPECT_TRUE(mask.test(63));
  EXPECT_FALSE(mask.test(7));
  std::vector<int64_t> seen;
  mask.for_each([&](int64_t i) { seen.push_back(i); });
  EXPECT_THAT(seen, testing::ElementsAre(0, 63, 64, 130));
}

TEST(BitMask, BytesRoundTripAndAnyNonzeroByteIsOne) {
  const std::vector<uint8_t> bytes{0, 1, 255, 0, 2};
  const BitMask mask = BitMask::from_bytes(bytes);
  EXPECT_THAT(mask.to_bytes(), testing::ElementsAre(0, 1, 1, 0, 1));
  EXPECT_EQ(BitMask::from_bytes(mask.to_bytes()), mask);
  EXPECT_NE(BitMask::zeros(5), mask);
  EXPECT_NE(BitMask::zeros(5), BitMask::zeros(6));
}

TEST(BitMask, TakesWordsWithoutTheBitsPastItsEnd) {
  const BitMask mask = BitMask::from_words(66, {1, ~uint64_t{0}});
  EXPECT_EQ(mask.count(), 3);
  EXPECT_TRUE(mask.test(0) && mask.test(64) && mask.test(65));
  EXPECT_EQ(BitMask::from_words(0, {}), BitMask::zeros(0));
  expect_throws<ShapeError>([] { BitMask::from_words(65, {1}); }, "65 bits has 2 words, found 1");
}

TEST(BitMask, RefusesNegativeSizes) {
  for (const int64_t size : {-1, -1000}) {
    expect_throws<ShapeError>([&] { BitMask::zeros(size); }, "cannot have a negative size");
  }
}

}  // namespace
}  // namespace lacuna::bit_mask_test
