#include "lacuna/layers/residual.h"

#include <gmock/gmock.h>

#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::residual_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> all;
  for (const ParameterPtr& parameter : module.parameters()) all.push_back(parameter->name());
  return all;
}

TEST(Residual, AddsItsInput) {
  Residual residual;
  residual.add<ReLU>("relu");
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{1, -2, 3, -4});
  EXPECT_THAT(residual(x).value().to_vector(), ElementsAre(2, -2, 6, -4));
  EXPECT_EQ(residual.output_shape({2}), (Shape{2}));
  EXPECT_EQ(residual.description(), "shortcut: identity");
  EXPECT_EQ(residual.type(), "residual");
  EXPECT_TRUE(residual.shortcut().empty());
}

TEST(Residual, AddsItsShortcut) {
  Residual residual;
  auto& down = residual.add_shortcut<Linear>("downsample.0", {.in_features = 2, .out_features = 3});
  auto& fc = residual.add<Linear>("fc", {.in_features = 2, .out_features = 3});
  residual.add_shortcut<ReLU>("downsample.1");
  EXPECT_EQ(residual.output_shape({5, 2}), (Shape{5, 3}));
  EXPECT_EQ(residual.description(), "shortcut: linear downsample.0, relu downsample.1");
  down.weight()->assign(Tensor::full({3, 2}, 1.0f));
  down.bias()->assign(Tensor::full({3}, -4.0f));
  fc.weight()->assign(Tensor::full({3, 2}, 2.0f));
  fc.bias()->assign(Tensor::full({3}, 0.5f));
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_THAT(residual(x).value().to_vector(),
              ElementsAre(6.5f, 6.5f, 6.5f, 17.5f, 17.5f, 17.5f));  // 2·3+.5, 2·7+.5+(7−4)
}

TEST(Residual, PassesGradientsBothWays) {
  Residual residual;
  auto& fc = residual.add<Linear>("fc", {.in_features = 2, .out_features = 2, .bias = false});
  fc.weight()->assign(Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4}));
  const Variable x = Variable::leaf(Tensor::from({1, 2}, std::vector<float>{5, 6}));
  backward(sum(residual(x)));
  EXPECT_THAT(x.gradient().to_vector(), ElementsAre(5, 7));  // 1 + a column of the weight
  EXPECT_THAT(fc.weight()->gradient().to_vector(), ElementsAre(5, 6, 5, 6));
}

TEST(Residual, AddsNoLevelToPaths) {
  Sequential model;
  auto& block = model.add<Sequential>("block");
  auto& residual = block.add<Residual>("residual");
  residual.add<Linear>("fc", {.in_features = 2, .out_features = 2, .bias = false});
  residual.add<Residual>("inner").add<Linear>("deep.fc",
                                              {.in_features = 2, .out_features = 2, .bias = false});
  EXPECT_EQ(residual.path(), "block.residual");
  EXPECT_EQ(residual.children()[1].second->path(), "block.inner");
  EXPECT_THAT(names(model), ElementsAre("block.fc.weight", "block.deep.fc.weight"));
  auto apart = std::make_unique<Residual>();
  apart->add<Linear>("fc", {.in_features = 2, .out_features = 2, .bias = false});
  EXPECT_THAT(names(*apart), ElementsAre("fc.weight"));
  model.add("apart", std::move(apart));
  EXPECT_EQ(names(model).back(), "fc.weight");
}

TEST(Residual, RefusesShapesThatDiffer) {
  Sequential model;
  auto& residual = model.add<Residual>("block");
  residual.add<Linear>("fc", {.in_features = 2, .out_features = 1});
  const std::string words =
      "layer 'block' (residual): its layers give shape [1], its input, the shortcut, has shape "
      "[2]; they are added, so they must be equal";
  expect_throws<ShapeError>([&] { residual.output_shape({2}); }, words);
  // Broadcasting would have made a sum of it.
  expect_throws<ShapeError>(
      [&] {
        residual(Tensor::zeros({3, 2}));
      },
      "its layers give shape [3, 1], its input, the shortcut, has shape "
      "[3, 2]");
  residual.add_shortcut<Linear>("down", {.in_features = 2, .out_features = 4});
  expect_throws<ShapeError>([&] { residual.output_shape({2}); },
                            "its layers give shape [1], its shortcut gives shape [4]");
}

}  // namespace
}  // namespace lacuna::residual_test
