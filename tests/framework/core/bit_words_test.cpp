#include "lacuna/framework/core/bit_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace lacuna::bit_words_test {
namespace {

bool bit(const std::vector<uint64_t>& words, int64_t i) {
  return (words[static_cast<size_t>(i / 64)] >> (i % 64) & 1) != 0;
}

TEST(BitWords, ArePutFromAnyBitOnAndNoOthersChange) {
  const std::vector<uint64_t> from = {0xf00dfeedc0ffee11u, 0x123456789abcdef3u, ~uint64_t{0}};
  for (const int64_t count : {0, 1, 12, 63, 64, 65, 128, 150}) {
    for (const int64_t first : {0, 1, 52, 63, 64, 100}) {
      std::vector<uint64_t> words(static_cast<size_t>((first + count + 63) / 64));  // no more
      const int64_t size = 64 * static_cast<int64_t>(words.size());
      if (first > 0) words[0] = 1;  // set before, and stays
      put_bits(from.data(), count, first, words.data());
      for (int64_t i = 0; i < size; ++i) {
        const bool is_put = i >= first && i < first + count;
        ASSERT_EQ(bit(words, i), (is_put && bit(from, i - first)) || (first > 0 && i == 0))
            << count << " bits from " << first << " on, " << i;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::bit_words_test
