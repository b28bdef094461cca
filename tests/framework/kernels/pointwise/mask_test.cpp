#include "lacuna/framework/kernels/pointwise/mask.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "throws.h"

namespace lacuna::mask_test {
namespace {

TEST(SelectByMask, KeepsSetPositionsForEverySize) {
  const CounterRng rng(1, "mask");
  for (int64_t size = 0; size < 200; ++size) {
    BitMask mask = BitMask::zeros(size);
    std::vector<float> values(static_cast<size_t>(size)), expected(values.size());
    for (int64_t i = 0; i < size; ++i) {
      values[static_cast<size_t>(i)] = static_cast<float>(i + 1);
      if (rng.bits(static_cast<uint64_t>(size * 200 + i)) % 3 == 0) {
        mask.set(i);
        expected[static_cast<size_t>(i)] = static_cast<float>(i + 1);
      }
    }
    select_by_mask(mask, values);
    ASSERT_EQ(values, expected) << size;
  }
}

TEST(SelectByMask, NaNAndInfinityDoNotLeak) {
  std::vector<float> values(130, std::numeric_limits<float>::quiet_NaN());
  values[3] = std::numeric_limits<float>::infinity();
  BitMask mask = BitMask::zeros(130);
  mask.set(129);
  values[129] = 2.0f;
  select_by_mask(mask, values);
  for (size_t i = 0; i < 129; ++i) ASSERT_EQ(values[i], 0.0f);
  EXPECT_EQ(values[129], 2.0f);
}

TEST(SelectByMask, SeveralBlocks) {
  std::vector<float> values((1 << 17) + 5, 1.0f);
  BitMask mask = BitMask::zeros(static_cast<int64_t>(values.size()));
  mask.set(70000);
  mask.set((1 << 17) + 4);
  select_by_mask(mask, values);
  double sum = 0;
  for (const float value : values) sum += value;
  EXPECT_EQ(sum, 2.0);
}

TEST(SelectByMask, SizesMustAgree) {
  std::vector<float> values(3);
  expect_throws<ShapeError>([&] { select_by_mask(BitMask::ones(4), values); },
                            "a mask of 4 bits for an array of 3");
}

}  // namespace
}  // namespace lacuna::mask_test
