// Masks that change in training on int8 grids: weights that stay keep their float32 values, and
// scales follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/train/training_steps.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna::pruned_on_grids_test {
namespace {

class PrunedOnGrids : public testing::TestWithParam<const char*> {};

TEST_P(PrunedOnGrids, SurvivorsKeepTheirValues) {
  const Config config = parse_yaml(std::string(R"(
data: {type: glyphs, train_size: 100, test_size: 30}
model: [flatten, {type: linear, name: fc1, out_features: 12}, relu, {type: linear, name: fc2, out_features: 16},
        relu, {type: linear, name: fc3, out_features: 10}]
optimizer: {type: sgd, lr: 0.0}
quantize: {algorithm: qat, param_filter: fc2.weight}
train: {steps: 5, batch_size: 20, threads: 1}
sparsity: )") + GetParam() + "\n",
                                   "e.yaml");
  const auto e = build_experiment(config);
  const Parameter& weight = *e->model->parameter("fc2.weight");
  const std::vector<float> before = weight.to_dense().to_vector();
  take_steps(*e, 5);
  const std::vector<float> after = weight.to_dense().to_vector();
  size_t pruned = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] == 0.0f)
      ++pruned;
    else
      ASSERT_EQ(after[i], before[i]) << i;
  }
  EXPECT_EQ(pruned, after.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, PrunedOnGrids,
    testing::Values("{algorithm: magnitude, sparsity: 0.5}", "{algorithm: wanda, sparsity: 0.5}",
                    "{algorithm: snip, sparsity: 0.5, scope: layer}",
                    "{phases: [{until: 3, algorithm: dense}, {algorithm: magnitude, "
                    "sparsity: 0.5}]}"));

class MovingMasks : public testing::TestWithParam<const char*> {};

// At first, more than half of the 16 rows have no weight and so no scale; an algorithm fills some.
TEST_P(MovingMasks, ScalesFollow) {
  const auto e = build_experiment(parse_yaml(std::string(R"(
data: {type: glyphs, train_size: 100, test_size: 30}
model: [flatten, {type: linear, name: fc1, out_features: 12}, relu, {type: linear, name: fc2, out_features: 16},
        relu, {type: linear, name: fc3, out_features: 10}]
optimizer: {type: adam, lr: 0.01}
sparsity: {algorithm: set, sparsity: 0.96, drop_fraction: 0.5, param_filter: fc2.weight, update: {freq: 3, stop: 40}}
train: {steps: 40, batch_size: 20, threads: 1}
quantize: {algorithm: qat, param_filter: fc2.weight, )") +
                                                 GetParam() + "}\n",
                                             "e.yaml"));
  const Parameter& weight = *e->model->parameter("fc2.weight");
  const auto scales = [&] {
    return e->state_dict().below("qat").below("fc2.weight").get<Tensor>("scales").to_vector();
  };
  take_steps(*e, 1);
  EXPECT_GE(std::ranges::count(scales(), 0.0f), 8);
  for (const int64_t steps : {29, 1}) {
    take_steps(*e, steps);
    const std::vector<float> found = grid_scales(weight.to_dense(), GridClip::Max), now = scales();
    for (size_t r = 0; r < found.size(); ++r) EXPECT_TRUE(now[r] > 0.0f || found[r] == 0.0f) << r;
    const bool is_observed = std::string(GetParam()).find("observed") != std::string::npos;
    if (is_observed && steps == 29) {  // the thirtieth step has moved the mask
      EXPECT_EQ(now, found);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scales, MovingMasks,
                         testing::Values("scales: observed, freeze_after: 0.2", "scales: learned"));

}  // namespace
}  // namespace lacuna::pruned_on_grids_test
