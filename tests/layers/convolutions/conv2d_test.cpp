#include "lacuna/layers/convolutions/conv2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::conv2d_test {
namespace {

TEST(Conv2dLayer, ComputesAndCollectsGradients) {
  Sequential model;
  auto& conv = model.add<Conv2d>("conv", {.in_channels = 1, .out_channels = 2, .kernel = {1, 2}});
  conv.weight()->assign(Tensor::from({2, 1, 1, 2}, std::vector<float>{1, 10, -1, 0}));
  conv.bias()->assign(Tensor::from({2}, std::vector<float>{0.5f, 0.0f}));
  const Variable y = model(Tensor::from({1, 1, 1, 3}, std::vector<float>{1, 2, 3}));
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(y.value().to_vector(), (std::vector<float>{21.5f, 32.5f, -1, -2}));
  backward(sum(y));
  EXPECT_EQ(conv.weight()->gradient().to_vector(), (std::vector<float>{3, 5, 3, 5}));
  EXPECT_EQ(conv.bias()->gradient().to_vector(), (std::vector<float>{2, 2}));
}

TEST(Conv2dLayer, NamesItsParametersAndSaysWhatTheyAre) {
  Sequential model;
  auto& conv = model.add<Conv2d>(
      "conv", {.in_channels = 4, .out_channels = 6, .kernel = {3, 2}, .groups = 2});
  EXPECT_EQ(conv.type(), "conv2d");
  EXPECT_EQ(conv.weight()->name(), "conv.weight");
  EXPECT_EQ(conv.weight()->shape(), (Shape{6, 2, 3, 2}));
  EXPECT_EQ(conv.weight()->use, WeightUse::Convolution);
  EXPECT_EQ(conv.bias()->shape(), (Shape{6}));
  EXPECT_EQ(conv.bias()->use, WeightUse::Other);
  const Conv2d without({.in_channels = 1, .out_channels = 2, .bias = false});
  EXPECT_EQ(without.bias(), nullptr);
  EXPECT_EQ(without.parameters().size(), 1u);
}

TEST(Conv2dLayer, PassesItsOptionsOn) {
  Conv2d conv({.in_channels = 4,
               .out_channels = 6,
               .kernel = {3, 2},
               .stride = {2, 1},
               .padding = {1, 2},
               .dilation = {2, 3},
               .groups = 2});
  conv.initialize(3);
  const Tensor x = test::normal_tensor("x", {2, 4, 9, 7});
  const Variable expected =
      conv2d(x, conv.weight(), Variable::of(conv.bias()),
             {.stride = {2, 1}, .padding = {1, 2}, .dilation = {2, 3}, .groups = 2});
  const Variable y = conv(x);
  EXPECT_EQ(y.value().to_vector(), expected.value().to_vector());
  EXPECT_EQ(y.shape().without_batch(), conv.output_shape({4, 9, 7}));
  EXPECT_EQ(conv.output_shape({4, 9, 7}), (Shape{6, 4, 8}));
  EXPECT_EQ(conv.uses_per_weight({4, 9, 7}), 32);
}

TEST(Conv2dLayer, TellsTheSizesOfItsImagesWhereItKnowsThem) {
  const Conv2d known({.in_channels = 4,
                      .out_channels = 6,
                      .stride = {2, 2},
                      .padding = {1, 1},
                      .groups = 2,
                      .image = {9, 7}});
  const auto& shape = known.weight()->convolution;
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->in_channels, 4);
  EXPECT_EQ(shape->out_channels, 6);
  EXPECT_EQ(shape->groups, 2);
  EXPECT_EQ(shape->image, (Extent{9, 7}));
  EXPECT_EQ(shape->window,
            (Window{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 1}}));
  const Conv2d unknown({.in_channels = 4, .out_channels = 6});
  EXPECT_FALSE(unknown.weight()->convolution.has_value());
}

float largest(const ParameterPtr& parameter) {
  float most = 0.0f;
  for (const float v : parameter->values().to_vector()) most = std::max(most, std::abs(v));
  return most;
}

// PyTorch's: uniform within 1 / √fan_in, which counts the channels of a group and the kernel.
TEST(Conv2dLayer, DrawsAsPyTorchDoes) {
  Conv2d conv({.in_channels = 50, .out_channels = 300, .kernel = {2, 4}, .groups = 2});
  conv.initialize(1);
  const float bound = 1.0f / std::sqrt(200.0f);
  EXPECT_LE(largest(conv.weight()), bound);
  EXPECT_GT(largest(conv.weight()), 0.999f * bound);
  EXPECT_LE(largest(conv.bias()), bound);
  EXPECT_GT(largest(conv.bias()), 0.95f * bound);
  const Conv2d zero({.in_channels = 2, .out_channels = 2, .init = WeightInit::Zeros});
  EXPECT_EQ(largest(zero.weight()), 0.0f);
  EXPECT_EQ(largest(zero.bias()), 0.0f);
}

TEST(Conv2dLayer, KaimingNormalGoesByTheFanIn) {
  Conv2d conv({.in_channels = 50,
               .out_channels = 300,
               .kernel = {2, 4},
               .init = WeightInit::KaimingNormal});
  conv.initialize(1);
  double squares = 0.0;
  const std::vector<float> values = conv.weight()->values().to_vector();
  for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  // √(2 / 400), of 120,000 values.
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), std::sqrt(2.0 / 400), 5e-4);
}

TEST(Conv2dLayer, RefusesShapesAndOptions) {
  Sequential model;
  auto& conv = model.add<Conv2d>("stem", {.in_channels = 3, .out_channels = 4});
  const char* words =
      "layer 'stem' (conv2d): a weight of shape [4, 3, 3, 3] needs examples of shape [3, height, "
      "width], found ";
  expect_throws<ShapeError>(
      [&] {
        conv.output_shape({4, 8, 8});
      },
      words + std::string("[4, 8, 8]"));
  expect_throws<ShapeError>([&] { conv.output_shape({3, 8}); }, words + std::string("[3, 8]"));
  expect_throws<ShapeError>(
      [&] {
        conv.output_shape({3, 2, 8});
      },
      "layer 'stem' (conv2d): a kernel of 3x3 does not fit an image of 2x8 with padding 0x0");
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({2, 4, 8, 8}));
      },
      "conv2d 'stem.weight': a weight of shape [4, 3, 3, 3] needs images "
      "[batch, 3, height, width], found [2, 4, 8, 8]");
  const auto refuses = [](const Conv2d::Options& options, const std::string& message) {
    expect_throws<ConfigError>([&] { Conv2d layer(options); }, message);
  };
  refuses({},
          "conv2d: in_channels, out_channels and kernel must be at least 1, found 0, 0 and 3x3");
  refuses({.in_channels = 2, .out_channels = 2, .kernel = {3, 0}}, "found 2, 2 and 3x0");
  refuses({.in_channels = 4, .out_channels = 6, .groups = 4},
          "conv2d: groups must divide the channels, found 4 groups of 4 input and 6 output "
          "channels");
  refuses({.in_channels = 4, .out_channels = 6, .groups = 0}, "found 0 groups");
}

// The readers of the first convolution are a dense shortcut of 1 × 1 and the one after it.
TEST(Conv2dLayer, OfFewInputsGivesSlabsWhileASparseOneFollows) {
  Sequential model;
  const auto add = [&](const char* name, int64_t in, Extent kernel) -> Conv2d& {
    const Extent padding{kernel.height / 2, kernel.width / 2};
    return model.add<Conv2d>(name, {.in_channels = in,
                                    .out_channels = 4,
                                    .kernel = kernel,
                                    .padding = padding,
                                    .image = {5, 6}});
  };
  Conv2d& first = add("first", 3, {3, 3});
  add("shortcut", 4, {1, 1});
  const Conv2d& second = add("second", 4, {3, 3});
  const Conv2d& third = add("third", 4, {3, 3});
  model.initialize(1);
  const Tensor x = test::normal_tensor("x", {16, 3, 5, 6});
  const auto order = [&] { return first(x).value().order(); };
  const auto make_sparse = [](const Conv2d& layer) {
    const Shape& shape = layer.weight()->shape();
    layer.weight()->set_pattern(Pattern::make(csr_layout(), shape, Positions::all(shape)));
  };
  make_sparse(second);
  EXPECT_EQ(order(), Order::RowMajor);  // it knows of none
  const std::vector<float> expected = first(x).value().to_vector();
  Conv2d::find_readers(model);
  EXPECT_EQ(order(), Order::ImageSlabs);
  const std::vector<float> found = first(x).value().to_vector();
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << i;
  second.weight()->set_pattern(Pattern::dense(second.weight()->shape()));
  make_sparse(third);
  EXPECT_EQ(order(), Order::RowMajor);
}

}  // namespace
}  // namespace lacuna::conv2d_test
