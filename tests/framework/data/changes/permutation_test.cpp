#include "lacuna/framework/data/changes/permutation.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace lacuna::permutation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SeededPermutation, HoldsEachNumberOnce) {
  EXPECT_THAT(seeded_permutation(0, 1, "x"), IsEmpty());
  EXPECT_THAT(seeded_permutation(1, 1, "x"), ElementsAre(0));
  for (const int64_t size : {2, 97, 1000}) {
    std::vector<int64_t> order = seeded_permutation(size, 1, "x");
    EXPECT_FALSE(size > 2 && std::ranges::is_sorted(order));
    std::ranges::sort(order);
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(SeededPermutation, DependsOnSeedNameAndStreamAlone) {
  const auto order = seeded_permutation(50, 1, "x", 2);
  EXPECT_EQ(order, seeded_permutation(50, 1, "x", 2));
  EXPECT_NE(order, seeded_permutation(50, 2, "x", 2));
  EXPECT_NE(order, seeded_permutation(50, 1, "y", 2));
  EXPECT_NE(order, seeded_permutation(50, 1, "x", 3));
}

// Many numbers are drawn at a time; they are those that would be drawn one at a time.
TEST(SeededPermutation, IsFisherAndYatesShuffle) {
  for (const int64_t size : {2, 128, 129, 130, 1000}) {
    std::vector<int64_t> expected(static_cast<size_t>(size));
    std::iota(expected.begin(), expected.end(), int64_t{0});
    const CounterRng rng(3, "x", 5);
    for (size_t last = expected.size(); last > 1; --last) {
      std::swap(expected[last - 1], expected[rng.below(last - 1, last)]);
    }
    EXPECT_EQ(seeded_permutation(size, 3, "x", 5), expected) << size;
  }
}

TEST(SeededPermutation, GivesEachOrderOfThreeEquallyOften) {
  std::array<int, 27> counts{};
  for (uint64_t stream = 0; stream < 6000; ++stream) {
    const auto order = seeded_permutation(3, 7, "x", stream);
    ++counts[static_cast<size_t>(9 * order[0] + 3 * order[1] + order[2])];
  }
  // 1000 expected, standard deviation 29.
  EXPECT_EQ(std::ranges::count_if(counts, [](int n) { return n > 870 && n < 1130; }), 6);
}

}  // namespace
}  // namespace lacuna::permutation_test
