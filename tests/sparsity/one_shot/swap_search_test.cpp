// Swaps of positions within rows: what least squares lose by the mask.
#include "lacuna/sparsity/one_shot/swap_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/sparsity/one_shot/swap_tableau.hpp"
#include "sparsity/one_shot/layers.h"

namespace lacuna::swap_search_test {
namespace {

OneShotOptions admm_with_least_squares() {
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  options.least_squares = true;
  return options;
}

double error_of(const Tensor& weight, const InputGram& gram, const MaskSet& mask) {
  return fit_least_squares("fc1", weight, gram, mask).relative_error;
}

MaskSet swapped(const MaskSet& mask, int64_t out, int64_t in) {
  BitMask bits = mask.bits();
  bits.reset(out);
  bits.set(in);
  return MaskSet(mask.shape(), std::move(bits));
}

// Of few inputs every one may leave and come, so that no swap is left that would gain anything.
TEST(SwapSearch, LeavesNoSwapThatGains) {
  const int64_t in = 12;
  for (const PatternShape& pattern : {PatternShape(), PatternShape::nm(2, 4)}) {
    const Tensor weight = random_tensor({5, in}, "w");
    const InputGram gram = gram_of(in, inputs_of_condition(60, in, 1e3));
    const PrunedWeight pruned =
        prune(weight, gram, weight.numel() / 2, admm_with_least_squares(), pattern);
    expect_pruned(pruned, weight, weight.numel() / 2, gram, pattern.description());
    for (int64_t a = 0; a < weight.numel(); ++a) {
      for (int64_t b = a / in * in; b < a / in * in + in; ++b) {
        const bool share_cell = !pattern.is_nm() || a / 4 == b / 4;
        if (!pruned.mask.test(a) || pruned.mask.test(b) || !share_cell) continue;
        EXPECT_GE(error_of(weight, gram, swapped(pruned.mask, a, b)),
                  (1.0 - 1e-4) * pruned.relative_error)
            << a << " for " << b << ", " << pattern.description();
      }
    }
  }
}

/// The swaps of a mask by magnitude, which leaves much to gain.
struct Swapped {
  Swapped(const Tensor& weight, const InputGram& gram, const MaskSelector& selector, int64_t keep,
          const MaskSet& present = {})
      : options(OneShotOptions::defaults(OneShotMethod::Magnitude)),
        before(prune_one_shot(layer, weight, gram, selector, keep,
                              present.size() > 0 ? &present : nullptr, options)),
        after(swap_for_least_squares(
            {.layer = layer,
             .weight = weight,
             .rows = matrix_rows(weight.shape()),
             .columns = matrix_columns(weight.shape()),
             .gram = gram,
             .squares = gram.squares(),
             .selector = selector,
             .keep = keep,
             .present = present.size() > 0 ? present : MaskSet::all(weight.shape()),
             .options = options},
            before)) {}

  std::string layer = "fc1";
  OneShotOptions options;
  PrunedWeight before;
  MaskSet after;
};

void expect_better(const Swapped& swaps, const Tensor& weight, const InputGram& gram) {
  EXPECT_LT(error_of(weight, gram, swaps.after), 0.95 * error_of(weight, gram, swaps.before.mask));
  EXPECT_EQ(row_counts(swaps.after), row_counts(swaps.before.mask));
}

TEST(SwapSearch, StaysInRowsCellsAndGroups) {
  const int64_t in = 64;
  const Tensor weight = random_tensor({20, in}, "w");
  const InputGram gram = gram_of(in, inputs_of_condition(300, in, 1e3));
  const int64_t keep = weight.numel() / 2;
  expect_better(Swapped(weight, gram, MaskSelector({}, {}, weight.shape()), keep), weight, gram);

  const MaskSelector cells({}, PatternShape::nm(2, 4), weight.shape());
  const Swapped of_cells(weight, gram, cells, keep);
  expect_better(of_cells, weight, gram);
  EXPECT_EQ(cells.fit(of_cells.after), MaskSelector::Fit::Whole);

  const MaskSelector groups(ScoreGroups::columns(4), {}, weight.shape());
  const Swapped of_groups(weight, gram, groups, keep);
  expect_better(of_groups, weight, gram);
  std::vector<int64_t> counts(4, 0);
  of_groups.after.positions().for_each([&](int64_t i) { ++counts[i % in / 16]; });
  EXPECT_THAT(counts, testing::Each(keep / 4));
}

// Cells of a convolution's weight are input channels that follow each other, at one tap.
TEST(SwapSearch, StaysInCellsOfConvolutions) {
  const Tensor weight = random_tensor({12, 8, 3, 3}, "w");
  const InputGram gram = gram_of(72, inputs_of_condition(400, 72, 1e3));
  const MaskSelector cells({}, PatternShape::nm(2, 4), weight.shape());
  const Swapped swaps(weight, gram, cells, weight.numel() / 2);
  expect_better(swaps, weight, gram);
  EXPECT_EQ(cells.fit(swaps.after), MaskSelector::Fit::Whole);
}

// Neither what was pruned before comes back, nor what has no input.
TEST(SwapSearch, TakesWhatIsPresentAndAliveAlone) {
  const int64_t in = 60;
  const Tensor weight = random_tensor({10, in}, "w");
  std::vector<float> inputs = inputs_of_condition(300, in, 1e3);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i % in == 7) inputs[i] = 0.0f;
  }
  const InputGram gram = gram_of(in, inputs);
  BitMask bits = BitMask::ones(weight.numel());
  for (int64_t i = 0; i < weight.numel(); i += 3) bits.reset(i);
  const MaskSet present(weight.shape(), std::move(bits));
  const Swapped swaps(weight, gram, MaskSelector({}, {}, weight.shape()), 200, present);
  EXPECT_EQ(swaps.after.count(), 200);
  swaps.after.positions().for_each([&](int64_t i) { EXPECT_TRUE(present.test(i)) << i; });
  for (int64_t i = 7; i < weight.numel(); i += in) {
    EXPECT_EQ(swaps.after.test(i), swaps.before.mask.test(i)) << i;
  }
  EXPECT_NE(swaps.after, swaps.before.mask);
}

TEST(SwapSearch, LeavesBlocksAndRowsThatKeepMostAsTheyAre) {
  const Tensor weight = random_tensor({16, 32}, "w");
  const InputGram gram = gram_of(32, inputs_of_condition(200, 32, 1e3));
  for (const PatternShape& pattern :
       {PatternShape::block(4, 4), PatternShape::nm(2, 4, 8), PatternShape::transposable_2_4()}) {
    const Swapped swaps(weight, gram, MaskSelector({}, pattern, weight.shape()), 256);
    EXPECT_EQ(swaps.after, swaps.before.mask) << pattern.description();
  }
  const Swapped most(weight, gram, MaskSelector({}, {}, weight.shape()), 480);
  EXPECT_EQ(most.after, most.before.mask);
  // Fewer rows than a row keeps: nothing is known of what a swap gains.
  const InputGram few = gram_of(32, inputs_of_condition(5, 32, 1e3));
  const Swapped of_few(weight, few, MaskSelector({}, {}, weight.shape()), 256);
  EXPECT_EQ(of_few.after.count(), 256);
}

TEST(SwapSearch, DoesNotDependOnTheNumberOfThreads) {
  const Tensor weight = random_tensor({270, 120}, "w");  // more than one chunk of rows
  const InputGram gram = gram_of(120, inputs_of_condition(500, 120, 1e4));
  for (const PatternShape& pattern : {PatternShape(), PatternShape::nm(2, 4)}) {
    const auto results = on_several_threads([&] {
      return prune(weight, gram, weight.numel() / 2, admm_with_least_squares(), pattern)
          .weight.to_vector();
    });
    EXPECT_EQ(results[0], results[1]) << pattern.description();
    EXPECT_EQ(results[0], results[2]) << pattern.description();
  }
}

// Variables that nothing ties together gain b² / K each.
TEST(SwapTableau, EndsWithTheLargestGains) {
  const std::vector<double> diagonal = {1, 2, 1, 4, 1}, right = {1, 5, 2, 12, 3};
  const auto used = [&](std::vector<int64_t> cells) {
    std::vector<double> table(36, 0.0);
    for (size_t i = 0; i < 5; ++i) {
      table[i * 6 + i] = diagonal[i];
      table[i * 6 + 5] = table[30 + i] = right[i];
    }
    SwapTableau tableau(std::move(table), 2, std::move(cells));
    tableau.swap_while_better(1e-9);
    std::vector<int64_t> found;
    for (int64_t i = 0; i < 5; ++i) {
      if (tableau.is_used(i)) found.push_back(i);
    }
    return found;
  };
  EXPECT_EQ(used({0, 0, 0, 0, 0}), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(used({0, 1, 0, 2, 1}), (std::vector<int64_t>{1, 2}));
}

// What SparseGPT loses is the least of what it does with its authors' damping and with its own.
TEST(SwapSearch, AdmmWithLeastSquaresLosesMuchLessThanSparseGpt) {
  struct Size {
    int64_t out, in;
  };
  for (const double sparsity : {0.5, 0.7}) {
    std::vector<double> ratios;
    for (const auto& [out, in] : {Size{24, 48}, {32, 64}, {16, 160}, {96, 96}}) {
      for (const double condition : {1e4, 1e6}) {
        for (const char* seed : {"a", "b"}) {
          const Tensor weight = random_tensor({out, in}, std::string("weight ") + seed);
          const InputGram gram = gram_of(in, inputs_of_condition(4 * in, in, condition, seed));
          const auto keep =
              static_cast<int64_t>((1.0 - sparsity) * static_cast<double>(weight.numel()));
          OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
          const double automatic = prune(weight, gram, keep, options).relative_error;
          options.damping = 0.01;
          const double given = prune(weight, gram, keep, options).relative_error;
          const PrunedWeight found = prune(weight, gram, keep, admm_with_least_squares());
          EXPECT_EQ(found.mask.count(), keep);
          ratios.push_back(found.relative_error / std::min(automatic, given));
          EXPECT_LE(ratios.back(), 0.75) << out << " x " << in << ", condition " << condition;
        }
      }
    }
    std::ranges::sort(ratios);
    EXPECT_LE(ratios[ratios.size() / 2], 0.7) << sparsity;
    EXPECT_LE(ratios.back(), 0.5) << sparsity;
  }
}

}  // namespace
}  // namespace lacuna::swap_search_test
