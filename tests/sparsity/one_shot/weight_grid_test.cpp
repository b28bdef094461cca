#include "lacuna/sparsity/one_shot/weight_grid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/one_shot/one_shot.h"
#include "random_values.h"
#include "throws.h"

namespace lacuna::weight_grid_test {
namespace {

TEST(GridScales, ReachTheLargestWeightOfEachRow) {
  const Tensor w =
      Tensor::from(Shape{3, 2}, std::vector<float>{127.0f, -3.0f, 0.0f, 0.0f, 1.0f, -2.54f});
  EXPECT_THAT(grid_scales(w, GridClip::Max), testing::ElementsAre(1.0f, 0.0f, 0.02f));
}

TEST(GridScales, ByMseLoseNoMoreThanByMax) {
  const Tensor w = random_tensor(Shape{4, 200}, "w");
  const std::vector<float> max = grid_scales(w, GridClip::Max), mse = grid_scales(w, GridClip::Mse);
  for (size_t row = 0; row < 4; ++row) {
    double by_max = 0.0, by_mse = 0.0;
    for (size_t i = 0; i < 200; ++i) {
      const float v = w.data()[row * 200 + i];
      by_max += std::pow(v - on_grid(v, max[row]), 2);
      by_mse += std::pow(v - on_grid(v, mse[row]), 2);
    }
    EXPECT_LE(by_mse, by_max);
    EXPECT_LE(mse[row], max[row]);
  }
}

TEST(GridStep, RoundsAndClips) {
  EXPECT_EQ(grid_step(1.26f, 0.5f), 3);
  EXPECT_EQ(grid_step(-1.25f, 0.5f), -2);  // a tie goes to the even step
  EXPECT_EQ(grid_step(1e30f, 0.5f), 127);
  EXPECT_EQ(grid_step(-1e30f, 0.5f), -127);
  EXPECT_EQ(grid_step(5.0f, 0.0f), 0);
}

class GridSweep : public testing::Test {
 protected:
  GridSweep() {
    // Inputs that go with each other, so that one can make up for another.
    std::vector<float> rows = random_values(300 * 24, "inputs");
    for (size_t r = 0; r < 300; ++r) {
      for (size_t i = 1; i < 24; ++i) rows[r * 24 + i] += 0.9f * rows[r * 24 + i - 1];
    }
    gram_.add(rows);
    options_.grid_scales = grid_scales(weight_, GridClip::Max);
    for (float& scale : options_.grid_scales) scale *= 16.0f;  // coarse: the difference is seen
  }
  PrunedWeight sweep(int64_t keep) const {
    return prune_one_shot("fc", weight_, gram_, selector_, keep, nullptr, options_);
  }

  const Tensor weight_ = random_tensor(Shape{10, 24}, "weight");
  InputGram gram_{24};
  const MaskSelector selector_{ScoreGroups(), PatternShape(), Shape{10, 24}};
  OneShotOptions options_ = OneShotOptions::defaults(OneShotMethod::SparseGpt);
};

TEST_F(GridSweep, GivesMultiplesOfTheSteps) {
  for (const int64_t keep : {240, 100}) {
    const PrunedWeight swept = sweep(keep);
    EXPECT_EQ(swept.mask.count(), keep);
    for (int64_t i = 0; i < 240; ++i) {
      const float w = swept.weight.data()[i];
      const float scale = options_.grid_scales[static_cast<size_t>(i / 24)];
      EXPECT_EQ(w, on_grid(w, scale)) << i;
      EXPECT_TRUE(swept.mask.test(i) || w == 0.0f) << i;
    }
  }
}

TEST_F(GridSweep, LosesLessThanRounding) {
  Tensor rounded = weight_.clone();
  for (int64_t i = 0; i < 240; ++i) {
    float& w = rounded.mutable_data()[i];
    w = on_grid(w, options_.grid_scales[static_cast<size_t>(i / 24)]);
  }
  EXPECT_LT(sweep(240).relative_error, 0.7 * relative_output_error(weight_, rounded, gram_));
}

TEST_F(GridSweep, AtOnceLosesLessThanRoundingWhatWasPruned) {
  const PrunedWeight both = sweep(216);
  OneShotOptions pruning = options_;
  pruning.grid_scales = {};
  const PrunedWeight pruned =
      prune_one_shot("fc", weight_, gram_, selector_, 216, nullptr, pruning);
  Tensor after = pruned.weight.clone();
  for (int64_t i = 0; i < 240; ++i) {
    float& w = after.mutable_data()[i];
    w = on_grid(w, options_.grid_scales[static_cast<size_t>(i / 24)]);
  }
  EXPECT_LT(both.relative_error, relative_output_error(weight_, after, gram_));
}

TEST_F(GridSweep, RefusesOtherMethodsAndCounts) {
  options_.method = OneShotMethod::Wanda;
  expect_throws<ConfigError>([&] { sweep(100); }, "only sparsegpt without least squares");
  options_.method = OneShotMethod::SparseGpt;
  options_.grid_scales.pop_back();
  expect_throws<ConfigError>([&] { sweep(100); }, "9 scales of a grid are not one for each of 10");
}

}  // namespace
}  // namespace lacuna::weight_grid_test
