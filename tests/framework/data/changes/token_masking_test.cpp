#include "lacuna/framework/data/changes/token_masking.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "lacuna/framework/config/named_tensors.h"

namespace lacuna::token_masking_test {
namespace {

constexpr int64_t kMask = 3, kVocabulary = 50;

TokenMasking masking(double fraction = 0.15) {
  return {.fraction = fraction,
          .mask_id = kMask,
          .vocabulary_size = kVocabulary,
          .special_ids = {0, 1, kMask, 7}};
}

struct Example {
  std::vector<int64_t> ids, labels;
};

Example hide(std::vector<int64_t> ids, uint64_t example, uint64_t epoch = 0, double fraction = 0.15,
             uint64_t seed = 1) {
  Example result{ids, ids};
  mask_tokens(result.ids, result.labels, masking(fraction), CounterRng(seed, "test", epoch),
              example);
  return result;
}

std::vector<int64_t> ordinary(size_t count) {
  std::vector<int64_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = 10 + static_cast<int64_t>(i % 20);
  return ids;
}

TEST(TokenMasking, ChoosesAFractionOfEachExample) {
  for (uint64_t example = 0; example < 20; ++example) {
    const std::vector<int64_t> ids = ordinary(40);
    const Example hidden = hide(ids, example);
    int chosen = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (hidden.labels[i] == kIgnoredLabel) {
        EXPECT_EQ(hidden.ids[i], ids[i]);
        continue;
      }
      EXPECT_EQ(hidden.labels[i], ids[i]);
      ++chosen;
    }
    EXPECT_EQ(chosen, 6);  // 15 % of 40
  }
}

// Token `number` of those that are not special.
int64_t ordinary_token(uint64_t number) {
  for (int64_t id = 0;; ++id) {
    const bool is_special = id == 0 || id == 1 || id == kMask || id == 7;
    if (!is_special && number-- == 0) return id;
  }
}

// Draws are made many at a time; they are those of each token's own place.
TEST(TokenMasking, DrawsTheNumbersOfEachToken) {
  for (const size_t length : {1, 127, 128, 129, 300}) {
    std::vector<int64_t> ids = ordinary(length);
    for (size_t i = 0; i < length; i += 5) ids[i] = 7;  // special
    if (length == 1) ids[0] = 10;
    const uint64_t example = 4;
    const CounterRng rng(1, "test", 2);
    auto open =
        static_cast<uint64_t>(std::ranges::count_if(ids, [](int64_t id) { return id != 7; }));
    auto missing =
        std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(0.3 * static_cast<double>(open))));
    Example expected{ids, {}};
    for (size_t i = 0; i < length; ++i) {
      const uint64_t place = 3 * (example * length + i);
      const bool is_chosen = ids[i] != 7 && rng.below(place, open--) < missing;
      if (is_chosen) --missing;
      expected.labels.push_back(is_chosen ? ids[i] : kIgnoredLabel);
      if (!is_chosen) continue;
      const uint64_t fate = rng.below(place + 1, 10);
      if (fate < 8) expected.ids[i] = kMask;
      if (fate == 8) expected.ids[i] = ordinary_token(rng.below(place + 2, kVocabulary - 4));
    }
    const Example hidden = hide(ids, example, /*epoch=*/2, 0.3);
    EXPECT_EQ(hidden.labels, expected.labels) << length;
    EXPECT_EQ(hidden.ids, expected.ids) << length;
  }
}

TEST(TokenMasking, HidesMostByTheMaskAndSomeByOtherTokens) {
  const std::vector<int64_t> ids = ordinary(100);
  int masked = 0, kept = 0, random = 0;
  std::set<int64_t> others;
  for (uint64_t example = 0; example < 400; ++example) {
    const Example hidden = hide(ids, example);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (hidden.labels[i] == kIgnoredLabel) continue;
      if (hidden.ids[i] == kMask) {
        ++masked;
      } else if (hidden.ids[i] == ids[i]) {
        ++kept;
      } else {
        ++random;
        others.insert(hidden.ids[i]);
      }
    }
  }
  // Of 6,000: deviations of 31, 23 and 23; one random token in 46 is the same.
  EXPECT_NEAR(masked, 4800, 125);
  EXPECT_NEAR(kept, 600 + 600 / 46, 95);
  EXPECT_NEAR(random, 600 - 600 / 46, 95);
  EXPECT_EQ(others.size(), 46u);  // all but the special ones
  for (const int64_t special : masking().special_ids) EXPECT_FALSE(others.contains(special));
}

TEST(TokenMasking, LeavesSpecialAndExcludedTokensAlone) {
  std::vector<int64_t> ids = {0, 11, 12, 7, 13, 1, 3, 14, 0, 0};
  for (uint64_t example = 0; example < 200; ++example) {
    Example hidden{ids, ids};
    hidden.labels[1] = kIgnoredLabel;
    mask_tokens(hidden.ids, hidden.labels, masking(0.9), CounterRng(2, "test"), example);
    for (const size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{5}, size_t{6}, size_t{8}}) {
      EXPECT_EQ(hidden.ids[i], ids[i]);
      EXPECT_EQ(hidden.labels[i], kIgnoredLabel);
    }
    EXPECT_EQ(10 - std::ranges::count(hidden.labels, kIgnoredLabel), 3);  // 2.7 of 12, 13, 14
  }
}

TEST(TokenMasking, ChoosesAtLeastOneWhereOneMayBe) {
  const Example one = hide({7, 20}, 5, 0, 0.01);
  EXPECT_THAT(one.labels, testing::ElementsAre(kIgnoredLabel, 20));
  const Example none = hide({7, 0}, 5, 0, 0.99);
  EXPECT_THAT(none.labels, testing::Each(kIgnoredLabel));
  EXPECT_THAT(none.ids, testing::ElementsAre(7, 0));
}

TEST(TokenMasking, ChoosesEachPlaceAlike) {
  std::vector<int> times(20);
  for (uint64_t example = 0; example < 4000; ++example) {
    const Example hidden = hide(ordinary(20), example);
    for (size_t i = 0; i < times.size(); ++i) times[i] += hidden.labels[i] != kIgnoredLabel ? 1 : 0;
  }
  for (const int count : times) EXPECT_NEAR(count, 600, 100);  // a deviation of 23
}

TEST(TokenMasking, IsAFunctionOfSeedEpochAndExample) {
  const std::vector<int64_t> ids = ordinary(60);
  const Example once = hide(ids, 8, 2);
  const Example again = hide(ids, 8, 2);
  EXPECT_EQ(once.ids, again.ids);
  EXPECT_EQ(once.labels, again.labels);
  EXPECT_NE(once.labels, hide(ids, 9, 2).labels);
  EXPECT_NE(once.labels, hide(ids, 8, 3).labels);
  EXPECT_NE(once.labels, hide(ids, 8, 2, 0.15, 9).labels);
}

}  // namespace
}  // namespace lacuna::token_masking_test
