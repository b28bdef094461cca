// Activations, and Flatten.
#include <gmock/gmock.h>

#include <cmath>

#include "lacuna/framework/core/error.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/flatten.h"
#include "throws.h"

namespace lacuna::activations_test {
namespace {

float at(Module& module, float x) { return module(Tensor::full({1, 1}, x)).value().item(); }

TEST(ActivationLayers, ComputeTheirFunctions) {
  ReLU relu;
  EXPECT_EQ(at(relu, -2.0f), 0.0f);
  EXPECT_EQ(at(relu, 2.0f), 2.0f);
  LeakyReLU leaky, steep({.negative_slope = 0.5f});
  EXPECT_EQ(at(leaky, -2.0f), -2.0f * 0.01f);
  EXPECT_EQ(at(leaky, 2.0f), 2.0f);
  EXPECT_EQ(at(steep, -2.0f), -1.0f);
  GELU gelu, approximate({.approximate = GELU::Approximate::Tanh});
  EXPECT_NEAR(at(gelu, 1.5f), 1.3997893f, 1e-6);
  EXPECT_NEAR(at(approximate, 1.5f), 1.3995715f, 1e-6);
  SiLU silu;
  EXPECT_NEAR(at(silu, 1.5f), 1.5 / (1.0 + std::exp(-1.5)), 1e-6);
  Sigmoid sigmoid;
  EXPECT_NEAR(at(sigmoid, 1.5f), 1.0 / (1.0 + std::exp(-1.5)), 1e-6);
  SquaredReLU squared;
  EXPECT_EQ(at(squared, -2.0f), 0.0f);
  EXPECT_EQ(at(squared, 3.0f), 9.0f);
  Tanh tanh;
  EXPECT_NEAR(at(tanh, 1.5f), std::tanh(1.5), 1e-6);
}

TEST(ActivationLayers, KeepShapesAndHaveNoParameters) {
  const ReLU relu;
  const LeakyReLU leaky;
  const GELU gelu;
  const SiLU silu;
  const Sigmoid sigmoid;
  const Tanh tanh;
  const SquaredReLU squared;
  for (const Module* layer : std::initializer_list<const Module*>{&relu, &leaky, &gelu, &silu,
                                                                  &sigmoid, &tanh, &squared}) {
    EXPECT_EQ(layer->output_shape({3, 5}), (Shape{3, 5})) << layer->type();
    EXPECT_TRUE(layer->parameters().empty()) << layer->type();
  }
}

TEST(LeakyReluLayer, RefusesSlopesThatCannotBeMeant) {
  expect_throws<ConfigError>(
      [] { LeakyReLU({.negative_slope = -0.1f}); },
      "leaky_relu: negative_slope must be a finite number of at least 0, found -0.1");
  EXPECT_THROW(LeakyReLU({.negative_slope = NAN}), ConfigError);
}

TEST(SwigluLayer, HalvesTheFeatures) {
  SwiGLU layer;
  EXPECT_EQ(layer.output_shape({5, 6}), (Shape{5, 3}));
  const auto y = layer(Tensor::from({1, 2}, std::vector<float>{2.0f, 3.0f})).value().to_vector();
  EXPECT_NEAR(y[0], 6.0 / (1.0 + std::exp(-2.0)), 1e-6);
  expect_throws<ShapeError>([&] { layer.output_shape({3}); },
                            "(swiglu): needs examples of shape [..., 2 features], found [3]");
}

TEST(FlattenLayer, KeepsTheBatch) {
  Flatten flatten;
  EXPECT_EQ(flatten.output_shape({28, 28}), (Shape{784}));
  EXPECT_EQ(flatten.output_shape({}), (Shape{1}));
  EXPECT_EQ(flatten(Tensor::zeros({5, 2, 3})).shape(), (Shape{5, 6}));
}

}  // namespace
}  // namespace lacuna::activations_test
