#include "lacuna/framework/kernels/select/draws.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lacuna::draws_test {
namespace {

TEST(DrawWords, AreThoseOfTheGeneratorsBlocks) {
  const CounterRng rng(3, "draws", uint64_t{7} << 40 | 5);
  for (const uint64_t first : {uint64_t{0}, uint64_t{11}, (uint64_t{1} << 32) - 9}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{67}}) {
      std::vector<uint64_t> words(count);
      draw_words(rng, first, words);
      for (size_t i = 0; i < count; ++i) {
        const auto block = rng.block(first + i);
        EXPECT_EQ(words[i], uint64_t{block[1]} << 32 | block[0]) << first << " + " << i;
      }
    }
  }
}

TEST(DrawBlocks, AreTheGeneratorsInAnyOrder) {
  const CounterRng rng(3, "draws", uint64_t{7} << 40 | 5);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{67}}) {
    std::vector<uint64_t> numbers(count);
    for (size_t i = 0; i < count; ++i) numbers[i] = rng.below(i, uint64_t{1} << (i % 2 ? 34 : 3));
    std::vector<uint32_t> words(4 * count);
    draw_blocks(rng, numbers, words);
    for (size_t i = 0; i < 4 * count; ++i) {
      EXPECT_EQ(words[i], rng.block(numbers[i / 4])[i % 4]) << "block " << numbers[i / 4];
    }
  }
}

TEST(DrawnWords, AreTheGeneratorsInOrder) {
  const CounterRng rng(1, "draws");
  DrawnWords words(rng);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(words.next(), rng.bits(i)) << i;
}

TEST(Draws, AreTheGeneratorsWhateverTheBounds) {
  const CounterRng rng(1, "draws");
  Draws draws(rng);
  // Above half of 2^64 nearly half of the words are rejected.
  const uint64_t bounds[] = {1, 2, 3, 1000, 1 << 20, uint64_t{1} << 63, (uint64_t{1} << 63) + 5};
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t bound = bounds[i / 5 % std::size(bounds)];
    EXPECT_EQ(draws.below(bound), rng.below(i, bound)) << i << " below " << bound;
  }
}

}  // namespace
}  // namespace lacuna::draws_test
