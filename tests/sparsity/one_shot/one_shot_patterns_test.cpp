// One-shot pruning within patterns, score groups and masks that are there already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "sparsity/one_shot/layers.h"
#include "throws.h"

namespace lacuna::one_shot_patterns_test {
namespace {

TEST(OneShotPatterns, PatternsHold) {
  const Tensor weight = random_tensor({16, 64}, "w");
  const InputGram gram = dependent_gram(300, 64);
  for (const PatternShape& pattern :
       {PatternShape::nm(2, 4), PatternShape::nm(1, 4), PatternShape::nm(4, 8),
        PatternShape::nm(2, 4, 8), PatternShape::transposable_2_4(), PatternShape::block(4, 8),
        PatternShape::block(16, 16, PatternShape::Norm::L2), PatternShape::block(1, 3 + 1)}) {
    const MaskSelector selector({}, pattern, weight.shape());
    const int64_t keep = pattern.is_nm() ? weight.numel() * pattern.n() / pattern.m() : 512;
    for (const OneShotMethod method : kAllMethods) {
      OneShotOptions options = OneShotOptions::defaults(method);
      options.block = 48;
      const std::string what = std::string(to_string(method)) + ", " + pattern.to_string();
      const PrunedWeight pruned = prune(weight, gram, keep, options, pattern);
      EXPECT_EQ(selector.fit(pruned.mask), MaskSelector::Fit::Whole) << what;
      EXPECT_LT(pruned.relative_error, 1.0) << what;
      expect_pruned(pruned, weight, keep, gram, what);
      options.least_squares = true;
      EXPECT_LE(prune(weight, gram, keep, options, pattern).relative_error, pruned.relative_error)
          << what;
    }
  }
}

TEST(OneShotPatterns, PatternsAreKeptSparserWhereTheMethodCan) {
  const Tensor weight = random_tensor({8, 32}, "w");
  const InputGram gram = dependent_gram(200, 32);
  for (const OneShotMethod method :
       {OneShotMethod::Magnitude, OneShotMethod::Wanda, OneShotMethod::Admm}) {
    const PrunedWeight pruned = prune(weight, gram, 50, method, PatternShape::nm(2, 4));
    expect_pruned(pruned, weight, 50, gram, to_string(method));
    EXPECT_EQ(MaskSelector({}, PatternShape::nm(2, 4), weight.shape()).fit(pruned.mask),
              MaskSelector::Fit::Whole);
  }
  expect_throws<ConfigError>(
      [&] { prune(weight, gram, 50, OneShotMethod::SparseGpt, PatternShape::nm(2, 4)); },
      "layer 'fc1': sparsegpt fills 2:4 greedily, and cannot keep 50 positions");
}

// A convolution's weight is that of a matrix whose columns are in another order: with a pattern tap
// by tap, so that the channels of a cell follow each other.
TEST(OneShotPatterns, ConvolutionsArePrunedAsTheirMatrices) {
  const int64_t out = 4, channels = 8, taps = 6, in = channels * taps;
  const Tensor weight = random_tensor({out, channels, 2, 3}, "w");
  const std::vector<float> inputs = dependent_inputs(300, in);
  std::vector<float> by_taps_inputs(inputs.size());
  Tensor by_taps = Tensor::empty({out, in});
  const auto reorder = [&](const float* from, float* to, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t t = 0; t < taps; ++t) {
          to[r * in + t * channels + c] = from[r * in + c * taps + t];
        }
      }
    }
  };
  reorder(inputs.data(), by_taps_inputs.data(), 300);
  reorder(weight.data(), by_taps.mutable_data(), out);
  for (const PatternShape& pattern : {PatternShape::nm(2, 4), PatternShape::block(2, 4)}) {
    for (const OneShotMethod method : kAllMethods) {
      const std::string what = std::string(to_string(method)) + ", " + pattern.to_string();
      const PrunedWeight pruned = prune(weight, gram_of(in, inputs), out * in / 2, method, pattern);
      EXPECT_EQ(MaskSelector({}, pattern, weight.shape()).fit(pruned.mask),
                MaskSelector::Fit::Whole)
          << what;
      const PrunedWeight as_matrix =
          prune(by_taps, gram_of(in, by_taps_inputs), out * in / 2, method, pattern);
      std::vector<float> reordered(static_cast<size_t>(out * in));
      reorder(pruned.weight.data(), reordered.data(), out);
      for (size_t i = 0; i < reordered.size(); ++i) {
        ASSERT_NEAR(reordered[i], as_matrix.weight.data()[i], 1e-4) << what;
      }
    }
  }
}

TEST(OneShotPatterns, ScoreGroupsKeepTheirParts) {
  const Tensor weight = random_tensor({4, 8}, "w");
  const MaskSelector grouped(ScoreGroups::rows(2), {}, weight.shape());
  for (const OneShotMethod method : {OneShotMethod::Magnitude, OneShotMethod::Admm}) {
    const PrunedWeight pruned = prune_one_shot("fc1", weight, dependent_gram(50, 8), grouped, 10,
                                               nullptr, OneShotOptions::defaults(method));
    EXPECT_EQ(pruned.mask.positions().row(0).size() + pruned.mask.positions().row(1).size(), 5u);
    EXPECT_EQ(pruned.mask.count(), 10);
  }
}

TEST(OneShotPatterns, PrunesFurtherWhatIsPruned) {
  const Tensor weight = random_tensor({12, 80}, "w");
  const InputGram gram = dependent_gram(300, 80);
  for (const OneShotMethod method : kAllMethods) {
    for (const auto granularity : {OneShotGranularity::Layer, OneShotGranularity::Row}) {
      OneShotOptions options = OneShotOptions::defaults(method);
      options.granularity = granularity;
      const PrunedWeight half = prune(weight, gram, 480, options);
      const PrunedWeight fifth = prune(half.weight, gram, 192, options, {}, &half.mask);
      expect_pruned(fifth, half.weight, 192, gram, to_string(method));
      EXPECT_EQ(count_common(half.mask, fifth.mask), 192) << to_string(method);
      // Where nothing is left to prune, the mask stays.
      EXPECT_EQ(prune(half.weight, gram, 480, options, {}, &half.mask).mask, half.mask);
      const PrunedWeight pattern =
          prune(weight, gram, 480, OneShotOptions::defaults(method), PatternShape::nm(2, 4));
      options.method = OneShotMethod::Admm;
      const PrunedWeight sparser =
          prune(pattern.weight, gram, 96, options, PatternShape::nm(2, 4), &pattern.mask);
      EXPECT_EQ(count_common(pattern.mask, sparser.mask), 96) << to_string(method);
    }
  }
}

// A row that has less than its share gives the rest to others.
TEST(OneShotPatterns, RowsThatHaveLittleGiveTheirShareAway) {
  const Tensor weight = random_tensor({3, 10}, "w");
  BitMask bits = BitMask::ones(30);
  for (int64_t i = 1; i < 10; ++i) bits.reset(i);  // of the first row one position
  const MaskSet present(weight.shape(), std::move(bits));
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Wanda);
  const PrunedWeight pruned = prune(weight, dependent_gram(50, 10), 15, options, {}, &present);
  EXPECT_EQ(pruned.mask.positions().row(0).size(), 1u);
  EXPECT_EQ(pruned.mask.positions().row(1).size(), 7u);
  EXPECT_EQ(pruned.mask.positions().row(2).size(), 7u);
}

}  // namespace
}  // namespace lacuna::one_shot_patterns_test
