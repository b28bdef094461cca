#include "lacuna/layers/tiled_linear.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::tiled_linear_test {
namespace {

TEST(TiledLinear, IsLinearLayersOneAfterTheOther) {
  Sequential model;
  TiledLinear& head = model.add<TiledLinear>(
      "classes", {.linear = {.in_features = 5, .out_features = 23}, .tile = 10});
  model.initialize(3);
  std::vector<std::string> names;
  for (const ParameterPtr& weight : head.tile_weights()) {
    names.push_back(weight->name() + " " + weight->shape().to_string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"classes.0.weight [10, 5]", "classes.1.weight [10, 5]",
                                             "classes.2.weight [3, 5]"}));
  const Variable x = test::normal_tensor("x", Shape{4, 5});
  const NoGrad no_grad;
  const Tensor whole = model(x).value();
  EXPECT_EQ(whole.shape(), (Shape{4, 23}));
  int64_t first = 0;
  for (const auto& [name, tile] : head.children()) {
    const Tensor part = (*tile)(x).value().to(Order::RowMajor);
    const int64_t count = part.shape()[1];
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t c = 0; c < count; ++c) {
        EXPECT_EQ(part.data()[i * count + c], whole.to(Order::RowMajor).data()[i * 23 + first + c]);
      }
    }
    first += count;
  }
  EXPECT_EQ(first, 23);
}

TEST(TiledLinear, CountsItsProducts) {
  Sequential model;
  model.add<TiledLinear>("classes", {.linear = {.in_features = 5, .out_features = 23}, .tile = 10});
  const auto rows = module_rows(model, Shape{5});
  const Flops flops = count_flops(rows, [](const Parameter& p) { return p.numel(); });
  EXPECT_EQ(flops.forward, 2.0 * 23 * 5);
}

// As calibration for one-shot pruning asks for.
TEST(TiledLinear, ReportsTheInputsOfItsTiles) {
  TiledLinear head({.linear = {.in_features = 5, .out_features = 7}, .tile = 4});
  int64_t reported = 0;
  const WatchWeightInputs watch(
      [&](const ParameterPtr&, const Variable& input, const ConvolutionShape*) {
        EXPECT_EQ(input.shape(), (Shape{3, 5}));
        ++reported;
      });
  EXPECT_EQ(head(test::normal_tensor("x", Shape{3, 5})).value().shape(), (Shape{3, 7}));
  EXPECT_EQ(reported, 2);
}

TEST(TiledLinear, RefusesWhatDoesNotFit) {
  expect_throws<ConfigError>(
      [] { TiledLinear({.linear = {.in_features = 5, .out_features = 3}, .tile = 0}); },
      "in_features, out_features and tile must be at least 1");
  const TiledLinear head({.linear = {.in_features = 5, .out_features = 7}});
  expect_throws<ShapeError>(
      [&] {
        head.output_shape(Shape{2, 5});
      },
      "need examples of shape [5], found [2, 5]");
}

}  // namespace
}  // namespace lacuna::tiled_linear_test
