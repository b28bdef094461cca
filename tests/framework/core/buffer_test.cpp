#include "lacuna/framework/core/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "lacuna/framework/core/block_cache.hpp"

#if defined(__SANITIZE_ADDRESS__)
// What cannot be had is not an error of the program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace lacuna::buffer_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(Buffer, IsAlignedPaddedAndCounted) {
  const int64_t before = memory_stats().current;
  reset_memory_peak();
  {
    const Buffer buffer(100);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % Buffer::kAlignment, 0u);
    EXPECT_EQ(buffer.bytes(), 128u);  // 116 readable, to a multiple of 64
    EXPECT_EQ(memory_stats().current, before + 128);
    EXPECT_EQ(memory_stats().largest, 128);
  }
  EXPECT_EQ(memory_stats().current, before);
  EXPECT_EQ(memory_stats().peak, before + 128);
  EXPECT_EQ(Buffer(0).data(), nullptr);
}

TEST(Buffer, ThatCannotBeHadIsABadAlloc) {
  const int64_t before = memory_stats().current;
  EXPECT_THROW(Buffer(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(Buffer(SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW(Buffer(SIZE_MAX - 1000), std::bad_alloc);  // rounded up, it has more than 64 bits
  EXPECT_EQ(memory_stats().current, before);
}

#if !defined(__SANITIZE_ADDRESS__)  // it must see every free, and nothing is kept

using Buffers = std::vector<std::unique_ptr<Buffer>>;

Buffers make(int count, int64_t bytes) {
  Buffers buffers;
  for (int i = 0; i < count; ++i) {
    buffers.push_back(std::make_unique<Buffer>(static_cast<size_t>(bytes)));
  }
  return buffers;
}

TEST(BlockCache, GivesABlockToTheNextOfItsSize) {
  void* block = Buffers(make(1, kMiB))[0]->data();
  EXPECT_NE(make(1, kMiB / 2)[0]->data(), block);
  EXPECT_EQ(make(1, kMiB)[0]->data(), block);
}

TEST(BlockCache, LeavesSmallBlocksToMalloc) {
  const int64_t kept = kept_block_bytes();
  make(100, 2000);
  EXPECT_EQ(kept_block_bytes(), kept);
  make(1, 5000);
  EXPECT_GT(kept_block_bytes(), kept);
}

// From here on each test has more in use than those before it, which the limit goes by.
TEST(BlockCache, KeepsWhatWasInUseAtOnceAndHalfBesides) {
  make(200, kMiB);
  EXPECT_GE(kept_block_bytes(), 200 * kMiB);
  for (int64_t size = 2; size < 12; ++size) make(20, size * kMiB);
  EXPECT_LE(kept_block_bytes(), 330 * kMiB);  // at most 220 of the last size were in use
}

TEST(BlockCache, LetsTheOldestGoFirst) {
  void* first = make(1, 400 * kMiB)[0]->data();
  EXPECT_GE(kept_block_bytes(), 400 * kMiB);
  void* second = make(1, 300 * kMiB)[0]->data();  // both would be more than a half above
  EXPECT_LE(kept_block_bytes(), 600 * kMiB);
  EXPECT_EQ(make(1, 300 * kMiB)[0]->data(), second);
  EXPECT_NE(first, second);
}

TEST(BlockCache, ForgetsSizesThatAreNoLongerAskedFor) {
  make(200, kMiB);
  // More than was ever in use, in another size: what may be kept beside them is 64 MiB.
  const Buffers other = make(700, kMiB + 4096);
  EXPECT_LE(kept_block_bytes(), 64 * kMiB);
}

#endif

}  // namespace
}  // namespace lacuna::buffer_test
