#include "lacuna/layers/norms.h"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::norms_test {
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

TEST(RmsNormLayer, NormalizesThenScales) {
  Sequential model;
  auto& norm = model.add<RmsNorm>("norm", {.features = 2, .eps = 1e-12});
  EXPECT_EQ(model.parameter("norm.weight")->values().to_vector(), std::vector<float>(2, 1.0f));
  EXPECT_EQ(model.parameters().size(), 1u);
  model.parameter("norm.weight")->assign(Tensor::full({2}, 2.0f));
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{1.0f, -7.0f});  // ⟨x²⟩ = 25
  const auto y = model(x).value().to_vector();
  EXPECT_FLOAT_EQ(y[0], 0.4f);
  EXPECT_FLOAT_EQ(y[1], -2.8f);
  expect_throws<ShapeError>([&] { norm.output_shape({3}); },
                            "layer 'norm' (rms_norm): a weight of shape [2] needs examples of "
                            "shape [..., 2], found [3]");
  EXPECT_THROW(RmsNorm({.features = 0}), ConfigError);
}

TEST(GroupNormLayer, NormalizesGroupsThenScalesAndShiftsChannels) {
  Sequential model;
  auto& norm = model.add<GroupNorm>("norm", {.channels = 4, .groups = 2, .eps = 1e-12});
  EXPECT_EQ(model.parameter("norm.weight")->values().to_vector(), std::vector<float>(4, 1.0f));
  EXPECT_EQ(model.parameter("norm.bias")->values().to_vector(), std::vector<float>(4, 0.0f));
  const Tensor x = Tensor::from({1, 4}, std::vector<float>{3.0f, 5.0f, 10.0f, 30.0f});
  EXPECT_EQ(model(x).value().to_vector(), (std::vector<float>{-1.0f, 1.0f, -1.0f, 1.0f}));
  model.parameter("norm.weight")->assign(Tensor::from({4}, std::vector<float>{1, 2, 3, 4}));
  model.parameter("norm.bias")->assign(Tensor::full({4}, 1.0f));
  EXPECT_EQ(model(x).value().to_vector(), (std::vector<float>{0.0f, 3.0f, -2.0f, 5.0f}));
  EXPECT_EQ(norm.output_shape({4, 7, 2}), (Shape{4, 7, 2}));
  EXPECT_EQ(norm.type(), "group_norm");
}

TEST(GroupNormLayer, BadSizesAreErrors) {
  Sequential model;
  model.add<GroupNorm>("norm", {.channels = 2});
  expect_throws<ShapeError>(
      [&] {
        model.output_shape({3, 5});
      },
      "layer 'norm' (group_norm): a weight of shape [2] needs examples of "
      "shape [2, ...], found [3, 5]");
  expect_throws<ConfigError>(
      [] { GroupNorm({.channels = 6, .groups = 4}); },
      "group_norm: channels must be divisible by groups, and both at least 1, found 6 channels and "
      "4 groups");
  EXPECT_THROW(GroupNorm({.channels = 0}), ConfigError);
  EXPECT_THROW(GroupNorm({.channels = 2, .groups = 0}), ConfigError);
  expect_throws<ConfigError>([] { GroupNorm({.channels = 2, .eps = 0.0}); },
                             "group_norm: eps must be above 0");
}

}  // namespace
}  // namespace lacuna::norms_test
