// Mask and grid at once, against one after the other.
#include "lacuna/sparsity/one_shot/prune_to_grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"
#include "random_values.h"
#include "throws.h"

namespace lacuna::prune_to_grid_test {
namespace {

constexpr int64_t kRows = 32, kColumns = 64, kExamples = 600;

class PruneToGrid : public testing::TestWithParam<int> {
 protected:
  PruneToGrid() : weight_(random_tensor(Shape{kRows, kColumns}, "w" + seed())) {
    std::vector<float> rows =
        random_values(static_cast<size_t>(kExamples * kColumns), "inputs" + seed());
    for (size_t r = 0; r < static_cast<size_t>(kExamples); ++r) {
      float* row = rows.data() + r * static_cast<size_t>(kColumns);
      for (int64_t i = 1; i < kColumns; ++i) row[i] += 0.8f * row[i - 1];
    }
    gram_.add(rows);
  }
  std::string seed() const { return std::to_string(GetParam()); }

  PrunedWeight prune(const Tensor& weight, OneShotOptions options, const MaskSet* present = nullptr,
                     int64_t keep = kRows * kColumns / 4) const {
    return prune_one_shot("fc", weight, gram_, selector_, keep, present, options);
  }
  // GPTQ on the mask that is there.
  Tensor brought_to_grid(const PrunedWeight& pruned) const {
    OneShotOptions sweep = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    sweep.grid_scales = grid_scales(pruned.weight, GridClip::Mse);
    return prune(pruned.weight, sweep, &pruned.mask, pruned.mask.count()).weight;
  }
  // The other way round: GPTQ of all weights, then pruned, what is left on the grid that was found.
  Tensor pruned_from_grid(OneShotOptions options) const {
    OneShotOptions sweep = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    sweep.grid_scales = grid_scales(weight_, GridClip::Mse);
    const Tensor dense = prune(weight_, sweep, nullptr, kRows * kColumns).weight;
    Tensor pruned = prune(dense, options).weight;
    for (int64_t i = 0; i < pruned.numel(); ++i) {
      float& w = pruned.mutable_data()[i];
      w = on_grid(w, sweep.grid_scales[static_cast<size_t>(i / kColumns)]);
    }
    return pruned;
  }
  double error(const Tensor& result) const { return relative_output_error(weight_, result, gram_); }

  void expect_on_grid(const PrunedWeight& pruned) const {
    ASSERT_EQ(pruned.grid_scales.size(), static_cast<size_t>(kRows));
    EXPECT_EQ(pruned.mask.count(), kRows * kColumns / 4);
    for (int64_t i = 0; i < pruned.weight.numel(); ++i) {
      const float w = pruned.weight.data()[i];
      EXPECT_EQ(w, on_grid(w, pruned.grid_scales[static_cast<size_t>(i / kColumns)]));
      EXPECT_TRUE(pruned.mask.test(i) || w == 0.0f);
    }
    EXPECT_NEAR(pruned.relative_error, error(pruned.weight), 1e-12);
  }

  Tensor weight_;
  InputGram gram_{kColumns};
  const MaskSelector selector_{ScoreGroups(), PatternShape(), Shape{kRows, kColumns}};
};

TEST_P(PruneToGrid, BySparseGptLosesLessThanOneAfterTheOther) {
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  const Tensor then_gptq = brought_to_grid(prune(weight_, options));
  const Tensor from_grid = pruned_from_grid(options);
  options.grid = GridClip::Mse;
  const PrunedWeight joint = prune(weight_, options);
  expect_on_grid(joint);
  EXPECT_LT(error(joint.weight), error(from_grid));
  EXPECT_LT(error(joint.weight), 0.95 * error(then_gptq));
}

TEST_P(PruneToGrid, ByAdmmLosesLessThanSparseGptAndThanGridFirst) {
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  options.least_squares = true;
  const Tensor from_grid = pruned_from_grid(options);
  const double floats = error(prune(weight_, options).weight);
  options.grid = GridClip::Mse;
  const PrunedWeight joint = prune(weight_, options);
  expect_on_grid(joint);
  EXPECT_LT(error(joint.weight), error(from_grid));
  OneShotOptions sparse_gpt = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  sparse_gpt.grid = GridClip::Mse;
  EXPECT_LT(error(joint.weight), error(prune(weight_, sparse_gpt).weight));
  // Int8 costs little over the float32 weights on as many positions.
  EXPECT_LT(error(joint.weight), 1.02 * floats);
}

TEST_P(PruneToGrid, RoundsEachWeightByItselfWhereAsked) {
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Magnitude);
  options.grid = GridClip::Max;
  options.rounds_to_nearest = true;
  const PrunedWeight rounded = prune(weight_, options);
  expect_on_grid(rounded);
  for (int64_t i = 0; i < rounded.weight.numel(); ++i) {
    if (!rounded.mask.test(i)) continue;
    EXPECT_NEAR(rounded.weight.data()[i], weight_.data()[i],
                0.51f * rounded.grid_scales[static_cast<size_t>(i / kColumns)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PruneToGrid, testing::Values(1, 2, 3));

TEST(PruneToGridOfConvolutions, IsThatOfTheirMatrix) {
  const Tensor weight = random_tensor(Shape{4, 2, 3, 3}, "conv");
  const Tensor matrix = weight.reshape(Shape{4, 18});
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  options.grid = GridClip::Max;
  const auto pruned = [&](const Tensor& w) {
    const MaskSelector selector(ScoreGroups(), PatternShape(), w.shape());
    return prune_one_shot("conv", w, InputGram::of_independent(18), selector, 36, nullptr, options);
  };
  const PrunedWeight ours = pruned(weight), expected = pruned(matrix);
  EXPECT_EQ(ours.weight.to_vector(), expected.weight.to_vector());
  EXPECT_EQ(ours.grid_scales, expected.grid_scales);
  EXPECT_EQ(ours.mask.count(), 36);
}

}  // namespace
}  // namespace lacuna::prune_to_grid_test
