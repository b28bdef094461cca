#include "lacuna/layers/layer_norm.h"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna {
namespace {

TEST(LayerNormLayer, NormalizesThenScalesAndShifts) {
  Sequential model;
  auto& norm = model.add<LayerNorm>("norm", {.features = 2, .eps = 1e-12});
  EXPECT_EQ(model.parameter("norm.weight")->values().to_vector(), std::vector<float>(2, 1.0f));
  EXPECT_EQ(model.parameter("norm.bias")->values().to_vector(), std::vector<float>(2, 0.0f));
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{3.0f, 5.0f});
  EXPECT_EQ(model(x).value().to_vector(), (std::vector<float>{-1.0f, 1.0f}));
  model.parameter("norm.weight")->assign(Tensor::full({2}, 3.0f));
  model.parameter("norm.bias")->assign(Tensor::full({2}, 1.0f));
  EXPECT_EQ(model(x).value().to_vector(), (std::vector<float>{-2.0f, 4.0f}));
  EXPECT_EQ(norm.output_shape({7, 2}), (Shape{7, 2}));
  EXPECT_EQ(norm.type(), "layer_norm");
}

TEST(LayerNormLayer, BadSizesAreErrors) {
  Sequential model;
  model.add<LayerNorm>("norm", {.features = 2});
  expect_throws<ShapeError>([&] { model.output_shape({3}); },
                            "layer 'norm' (layer_norm): a weight of shape [2] needs examples of "
                            "shape [..., 2], found [3]");
  expect_throws<ConfigError>(
      [] { LayerNorm({.features = 0}); },
      "layer_norm: features must be at least 1 and eps above 0, found 0 and");
  EXPECT_THROW(LayerNorm({.features = 2, .eps = 0.0}), ConfigError);
}

}  // namespace
}  // namespace lacuna
