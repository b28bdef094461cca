#include "lacuna/framework/kernels/simd/processor.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(Processor, AFirstLevelIsOfAPlausibleSize) {
  EXPECT_GE(first_level_bytes(), 8 * 1024);
  EXPECT_LE(first_level_bytes(), 1024 * 1024);
}

TEST(Processor, WhatFitsASecondLevelIsNeverWrittenAroundIt) {
  EXPECT_FALSE(writes_around_caches(0));
  EXPECT_FALSE(writes_around_caches(128 * 1024));
  // Larger arrays are not treated otherwise than smaller ones that are.
  EXPECT_GE(writes_around_caches(int64_t{1} << 40), writes_around_caches(64 << 20));
}

}  // namespace
}  // namespace lacuna
