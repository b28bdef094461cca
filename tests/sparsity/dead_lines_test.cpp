#include "lacuna/sparsity/dead_lines.h"

#include <gtest/gtest.h>

#include "lacuna/framework/core/random.h"

namespace lacuna {
namespace {

BitMask random_mask(int64_t size, float density, uint64_t seed) {
  const CounterRng rng(seed, "mask");
  BitMask mask = BitMask::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    if (rng.uniform(static_cast<uint64_t>(i)) < density) mask.set(i);
  }
  return mask;
}

TEST(DeadLinesTest, AreTheSameOfBitsAndOfPositions) {
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 5}, Shape{3, 64}, Shape{9, 63}, Shape{5, 130},
                             Shape{40, 200}, Shape{0, 4}, Shape{4, 0}, Shape{6, 3, 11}}) {
    for (const float density : {0.0f, 0.05f, 0.5f, 1.0f}) {
      const BitMask mask = random_mask(shape.numel(), density, 1);
      EXPECT_EQ(dead_lines(mask, shape), dead_lines(Positions::of(shape, mask)))
          << shape.to_string() << " at " << density;
    }
  }
}

TEST(DeadLinesTest, CommonBitsAreCounted) {
  for (const int64_t size : {0, 1, 64, 1000}) {
    const Shape shape{1, size};
    const BitMask a = random_mask(size, 0.5f, 1), b = random_mask(size, 0.5f, 2);
    EXPECT_EQ(count_common(a, b), count_common(Positions::of(shape, a), Positions::of(shape, b)));
    EXPECT_EQ(count_common(a, a), a.count());
  }
}

}  // namespace
}  // namespace lacuna
