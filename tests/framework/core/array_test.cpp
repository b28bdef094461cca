#include "lacuna/framework/core/array.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lacuna::array_test {
namespace {

TEST(ArrayTest, IsCountedAndKeepsItsBlockForTheNext) {
  const int64_t before = memory_stats().current;
  const void* block = nullptr;
  {
    const Array<float> array(100'003);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
    EXPECT_GE(memory_stats().current, before + 400'012);
    block = array.data();
  }
  EXPECT_EQ(memory_stats().current, before);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(Array<uint32_t>(100'003).data(), block);
#else
  EXPECT_NE(block, nullptr);
#endif
}

TEST(ArrayTest, ZeroesOnlyWhenToldTo) {
  EXPECT_EQ(Array<int64_t>(3, 0), (Array<int64_t>{0, 0, 0}));
  Array<int64_t> some{1, 2};
  some.resize(4, 7);
  EXPECT_EQ(some, (Array<int64_t>{1, 2, 7, 7}));
  EXPECT_TRUE(Array<int64_t>(0).empty());
}

}  // namespace
}  // namespace lacuna::array_test
