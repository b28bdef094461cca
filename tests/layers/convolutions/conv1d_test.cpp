#include "lacuna/layers/convolutions/conv1d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::conv1d_test {
namespace {

TEST(Conv1dLayer, ComputesAndCollectsGradients) {
  Sequential model;
  auto& conv = model.add<Conv1d>("conv", {.in_channels = 1, .out_channels = 2, .kernel = 2});
  conv.weight()->assign(Tensor::from({2, 1, 2}, std::vector<float>{1, 10, -1, 0}));
  conv.bias()->assign(Tensor::from({2}, std::vector<float>{0.5f, 0.0f}));
  const Variable y = model(Tensor::from({1, 1, 3}, std::vector<float>{1, 2, 3}));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{21.5f, 32.5f, -1, -2}));
  backward(sum(y));
  EXPECT_EQ(conv.weight()->gradient().to_vector(), (std::vector<float>{3, 5, 3, 5}));
  EXPECT_EQ(conv.bias()->gradient().to_vector(), (std::vector<float>{2, 2}));
}

TEST(Conv1dLayer, NamesItsParametersAndSaysWhatTheyAre) {
  Sequential model;
  auto& conv = model.add<Conv1d>(
      "conv", {.in_channels = 4, .out_channels = 6, .kernel = 5, .groups = 2, .length = 9});
  EXPECT_EQ(conv.type(), "conv1d");
  EXPECT_EQ(conv.weight()->name(), "conv.weight");
  EXPECT_EQ(conv.weight()->shape(), (Shape{6, 2, 5}));
  EXPECT_EQ(conv.weight()->use, WeightUse::Convolution);
  EXPECT_EQ(conv.bias()->shape(), (Shape{6}));
  const auto& shape = conv.weight()->convolution;
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->groups, 2);
  EXPECT_EQ(shape->image, (Extent{1, 9}));
  EXPECT_EQ(shape->window, (Window{.kernel = {1, 5}}));
  Conv1d without({.in_channels = 1, .out_channels = 2, .bias = false});
  EXPECT_EQ(without.bias(), nullptr);
  EXPECT_FALSE(without.weight()->convolution.has_value());
  EXPECT_EQ(without.require_bias()->values().to_vector(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(without.parameters().size(), 2u);
  EXPECT_EQ(without.require_bias(), without.bias());
}

TEST(Conv1dLayer, PassesItsOptionsOn) {
  Conv1d conv({.in_channels = 4,
               .out_channels = 6,
               .kernel = 3,
               .stride = 2,
               .padding = 2,
               .dilation = 3,
               .groups = 2});
  conv.initialize(3);
  const Tensor x = test::normal_tensor("x", {2, 4, 11});
  const Variable expected = conv1d(x, conv.weight(), Variable::of(conv.bias()),
                                   {.stride = 2, .padding = 2, .dilation = 3, .groups = 2});
  const Variable y = conv(x);
  EXPECT_EQ(y.value().to_vector(), expected.value().to_vector());
  EXPECT_EQ(y.shape().without_batch(), conv.output_shape({4, 11}));
  EXPECT_EQ(conv.output_shape({4, 11}), (Shape{6, 5}));
  EXPECT_EQ(conv.uses_per_weight({4, 11}), 5);
}

float largest(const ParameterPtr& parameter) {
  float most = 0.0f;
  for (const float v : parameter->values().to_vector()) most = std::max(most, std::abs(v));
  return most;
}

// PyTorch's: uniform within 1 / √fan_in, which counts the channels of a group and the kernel.
TEST(Conv1dLayer, DrawsAsPyTorchDoes) {
  Conv1d conv({.in_channels = 50, .out_channels = 300, .kernel = 8, .groups = 2});
  conv.initialize(1);
  const float bound = 1.0f / std::sqrt(200.0f);
  EXPECT_LE(largest(conv.weight()), bound);
  EXPECT_GT(largest(conv.weight()), 0.999f * bound);
  EXPECT_LE(largest(conv.bias()), bound);
  EXPECT_GT(largest(conv.bias()), 0.95f * bound);
  const Conv1d zero({.in_channels = 2, .out_channels = 2, .init = WeightInit::Zeros});
  EXPECT_EQ(largest(zero.weight()), 0.0f);
  EXPECT_EQ(largest(zero.bias()), 0.0f);
}

TEST(Conv1dLayer, RefusesShapesAndOptions) {
  Sequential model;
  auto& conv = model.add<Conv1d>("stem", {.in_channels = 3, .out_channels = 4});
  const std::string words =
      "layer 'stem' (conv1d): a weight of shape [4, 3, 3] needs examples of shape [3, length], "
      "found ";
  for (const Shape& input : {Shape{4, 8}, Shape{3}, Shape{3, 1, 8}}) {
    expect_throws<ShapeError>([&] { conv.output_shape(input); }, words + input.to_string());
  }
  expect_throws<ShapeError>(
      [&] {
        conv.output_shape({3, 2});
      },
      "layer 'stem' (conv1d): a kernel of 3 does not fit a length of 2 with padding 0");
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({2, 4, 8}));
      },
      "conv1d 'stem.weight': a weight of shape [4, 3, 3] needs sequences "
      "[batch, 3, length], found [2, 4, 8]");
  const auto refuses = [](const Conv1d::Options& options, const std::string& message) {
    expect_throws<ConfigError>([&] { Conv1d layer(options); }, message);
  };
  refuses({}, "conv1d: in_channels, out_channels and kernel must be at least 1, found 0, 0 and 3");
  refuses({.in_channels = 2, .out_channels = 2, .kernel = 0}, "found 2, 2 and 0");
  refuses({.in_channels = 4, .out_channels = 6, .groups = 4},
          "conv1d: groups must divide the channels, found 4 groups of 4 input and 6 output "
          "channels");
  refuses({.in_channels = 4, .out_channels = 6, .groups = 0}, "found 0 groups");
}

}  // namespace
}  // namespace lacuna::conv1d_test
