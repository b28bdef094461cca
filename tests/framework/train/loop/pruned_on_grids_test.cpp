// Weights that are pruned in a step that trains on int8 grids keep their float32 values.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/train/training_steps.h"
#include "lacuna/framework/io/yaml.h"

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

}  // namespace
}  // namespace lacuna::pruned_on_grids_test
