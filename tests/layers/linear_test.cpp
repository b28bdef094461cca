#include "lacuna/layers/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::linear_test {
namespace {

TEST(LinearLayer, ComputesAndCollectsGradients) {
  Sequential model;
  auto& fc = model.add<Linear>("fc", {.in_features = 2, .out_features = 3});
  fc.weight()->assign(Tensor::from({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  fc.bias()->assign(Tensor::from({3}, std::vector<float>{10, 20, 30}));
  const Variable y = model(Tensor::from({2, 2}, std::vector<float>{1, 1, 0, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{13, 27, 41, 14, 28, 42}));
  backward(sum(y));
  EXPECT_EQ(fc.weight()->gradient().to_vector(), (std::vector<float>{1, 3, 1, 3, 1, 3}));
  EXPECT_EQ(fc.bias()->gradient().to_vector(), (std::vector<float>{2, 2, 2}));
}

TEST(LinearLayer, NamesItsParameters) {
  Sequential model;
  auto& fc = model.add<Linear>("fc", {.in_features = 2, .out_features = 3});
  EXPECT_EQ(fc.weight()->name(), "fc.weight");
  EXPECT_EQ(fc.bias()->name(), "fc.bias");
  EXPECT_EQ(fc.type(), "linear");
  const Linear without({.in_features = 2, .out_features = 3, .bias = false});
  EXPECT_EQ(without.bias(), nullptr);
  EXPECT_EQ(without.parameters().size(), 1u);
}

TEST(LinearLayer, DrawsAsPyTorchDoes) {
  Linear fc({.in_features = 100, .out_features = 300});
  fc.initialize(1);
  float largest = 0.0f;
  for (const float v : fc.weight()->values().to_vector()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, 0.1f);
  EXPECT_GT(largest, 0.0999f);
  largest = 0.0f;
  for (const float v : fc.bias()->values().to_vector()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, 0.1f);
  EXPECT_GT(largest, 0.09f);
  const Linear zero({.in_features = 2, .out_features = 2, .init = WeightInit::Zeros});
  EXPECT_EQ(zero.weight()->values().to_vector(), std::vector<float>(4, 0.0f));
  EXPECT_EQ(zero.bias()->values().to_vector(), std::vector<float>(2, 0.0f));
}

TEST(LinearLayer, DrawsForTheFanInItIsGiven) {
  Linear fc({.in_features = 100,
             .out_features = 300,
             .init = WeightInit::KaimingUniform,
             .init_fan_in = 6});
  float largest = 0.0f;
  for (const float v : fc.weight()->values().to_vector()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, 1.0f);  // √2 · √(3/6)
  EXPECT_GT(largest, 0.999f);
  expect_throws<ConfigError>(
      [] { Linear({.in_features = 2, .out_features = 2, .init_fan_in = -1}); },
      "init_fan_in must be at least 1, or 0 for all inputs; found -1");
}

TEST(LinearLayer, DrawsForTheInputsThatTheFirstMaskLeaves) {
  Linear fc({.in_features = 100, .out_features = 300, .init_fan_in = FanIn::nonzeros()});
  Linear all({.in_features = 100, .out_features = 300});
  const auto largest = [](const Parameter& parameter) {
    float magnitude = 0.0f;
    for (const float v : parameter.values().to_vector()) {
      magnitude = std::max(magnitude, std::abs(v));
    }
    return magnitude;
  };
  EXPECT_EQ(fc.weight()->to_dense().to_vector(), all.weight()->to_dense().to_vector());
  std::vector<int64_t> four_of_each_row;
  for (int64_t i = 0; i < 300 * 100; ++i) {
    if (i % 25 == 3) four_of_each_row.push_back(i);
  }
  const Shape shape = fc.weight()->shape();
  fc.weight()->set_pattern(
      Pattern::make(csr_layout(), shape, Positions::of(shape, four_of_each_row)));
  EXPECT_LE(largest(*fc.weight()), 0.5f);  // 1 / √4
  EXPECT_GT(largest(*fc.weight()), 0.49f);
  EXPECT_EQ(fc.bias()->values().to_vector(), all.bias()->values().to_vector());
}

TEST(LinearLayer, KnowsItsOutputShape) {
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 784, .out_features = 300});
  auto& fc2 = model.add<Linear>("fc2", {.in_features = 100, .out_features = 10});
  EXPECT_EQ(fc2.output_shape({100}), (Shape{10}));
  EXPECT_EQ(fc2.output_shape({7, 100}), (Shape{7, 10}));
  expect_throws<ShapeError>([&] { model.output_shape({784}); },
                            "layer 'fc2' (linear): a weight of shape [10, 100] needs examples of "
                            "shape [..., 100], found [300]");
  EXPECT_THROW(fc2.output_shape({}), ShapeError);
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({1, 784}));
      },
      "linear 'fc2.weight': a weight of shape [10, 100] needs inputs");
}

TEST(LinearLayer, SizesBelowOneAreErrors) {
  expect_throws<ConfigError>(
      [] { Linear({.in_features = 0, .out_features = 3}); },
      "linear: in_features and out_features must be at least 1, found 0 and 3");
}

}  // namespace
}  // namespace lacuna::linear_test
