#include "lacuna/framework/kernels/select/bit_columns.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/random.h"

namespace lacuna::bit_columns_test {
namespace {

TEST(BitColumns, ListWhatIsSetInAnyRangeAtAnyDensity) {
  constexpr int64_t kBits = 9001;
  for (const uint32_t one_in : {1u, 2u, 9u, 300u, 100000u}) {
    const CounterRng rng(5, "bits", one_in);
    BitMask mask = BitMask::zeros(kBits);
    for (int64_t i = 0; i < kBits; ++i) {
      if (rng.bits(static_cast<uint64_t>(i)) % one_in == 0) mask.set(i);
    }
    for (const int64_t begin : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{4032}}) {
      for (const int64_t end : {begin, begin + 1, begin + 63, begin + 64, begin + 128, kBits}) {
        std::vector<uint32_t> expected;
        for (int64_t i = begin; i < end; ++i) {
          if (mask.test(i)) expected.push_back(static_cast<uint32_t>(i - begin));
        }
        std::vector<uint32_t> found(expected.size() + kBitColumnsSlack);
        const int64_t count = bit_columns(mask.words(), begin, end, found.data());
        found.resize(static_cast<size_t>(count));
        EXPECT_EQ(found, expected) << "[" << begin << ", " << end << "), one in " << one_in;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::bit_columns_test
