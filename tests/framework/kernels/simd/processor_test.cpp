#include "lacuna/framework/kernels/simd/processor.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "lacuna/framework/core/error.h"

namespace lacuna::processor_test {
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

// The variable is read once in a process, so that each value is tried in a process of its own.
class ProcessorDeathTest : public testing::Test {
 protected:
  ProcessorDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void print(const char* kind) {
    setenv("LACUNA_PROCESSOR", kind, 1);
    try {
      std::fprintf(
          stderr, "%d KiB, around %d, by loads %d", static_cast<int>(first_level_bytes() / 1024),
          static_cast<int>(writes_around_caches(4 << 20)), static_cast<int>(spreads_by_loads()));
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "%s", error.what());
      std::exit(1);
    }
    std::exit(0);
  }
};

TEST_F(ProcessorDeathTest, IsSetByTheEnvironment) {
#ifdef LACUNA_SPREADS_BY_LOADS  // fixed when compiling
  EXPECT_EXIT(print("intel"), testing::ExitedWithCode(0), "48 KiB, around 1, ");
  EXPECT_EXIT(print("amd"), testing::ExitedWithCode(0), "32 KiB, around 0, ");
#else
  EXPECT_EXIT(print("intel"), testing::ExitedWithCode(0), "48 KiB, around 1, by loads 1");
  EXPECT_EXIT(print("amd"), testing::ExitedWithCode(0), "32 KiB, around 0, by loads 0");
#endif
}

TEST_F(ProcessorDeathTest, OfAnUnknownKindIsAnError) {
  EXPECT_EXIT(print("intl"), testing::ExitedWithCode(1),
              "LACUNA_PROCESSOR: unknown kind of processor 'intl'; did you mean 'intel'");
}

}  // namespace
}  // namespace lacuna::processor_test
