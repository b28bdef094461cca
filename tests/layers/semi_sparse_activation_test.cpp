#include "lacuna/layers/semi_sparse_activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/builtin.hpp"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::semi_sparse_activation_test {
namespace {

// The n largest |x| of each m, counted one by one.
std::vector<float> kept(const std::vector<float>& x, size_t n, size_t m) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    size_t before = 0;
    for (size_t j = i / m * m; j < i / m * m + m; ++j) {
      const float mine = std::abs(x[i]), other = std::abs(x[j]);
      before += other > mine || (other == mine && j < i) ? 1 : 0;
    }
    if (before < n) y[i] = x[i];
  }
  return y;
}

TEST(SemiSparseActivation, KeepsTheLargestOfEachGroupInBothStorageOrders) {
  for (const auto& [n, m] : {std::pair{2, 4}, {1, 4}, {2, 8}, {4, 16}, {3, 6}, {1, 1}, {5, 5}}) {
    for (const int64_t batch : {1, 3, 67}) {
      for (const int64_t groups : {1, 2, 7, 40}) {
        const Tensor x = test::normal_tensor("x", {batch, groups * m});
        SemiSparseActivation layer({.n = n, .m = m});
        const auto expected = kept(x.to_vector(), static_cast<size_t>(n), static_cast<size_t>(m));
        EXPECT_EQ(layer(x).value().to_vector(), expected) << n << ":" << m;
        EXPECT_EQ(layer(x.to(Order::BatchSlabs)).value().to_vector(), expected);
      }
    }
  }
}

TEST(SemiSparseActivation, PassesTheGradientToWhatWasKept) {
  const Tensor x = test::normal_tensor("x", {5, 3, 16}), dy = test::normal_tensor("dy", {5, 3, 16});
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    SemiSparseActivation layer;
    const Variable in = Variable::leaf(x.to(order));
    const Variable y = layer(in);
    backward(y, dy);
    const std::vector<float> out = y.value().to_vector(), given = dy.to_vector();
    const std::vector<float> found = in.gradient().to_vector();
    int64_t passed = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], out[i] == 0.0f ? 0.0f : given[i]) << i;
      passed += out[i] == 0.0f ? 0 : 1;
    }
    EXPECT_EQ(passed, 5 * 3 * 16 / 2);
  }
}

// [batch, channels, height, width]: the groups are of channels, at each pixel, as those of a
// convolution's weight.
TEST(SemiSparseActivation, GroupsTheChannelsOfImagesAtEachPixel) {
  constexpr int64_t kBatch = 3, kChannels = 8, kPixels = 5 * 6;  // m divides neither 5 nor 6
  const Shape shape{kBatch, kChannels, 5, 6};
  const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
  std::vector<float> expected(static_cast<size_t>(x.numel()));
  for (int64_t image = 0; image < kBatch; ++image) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
      const auto at = [&](int64_t channel) {
        return static_cast<size_t>((image * kChannels + channel) * kPixels + pixel);
      };
      std::vector<float> channels;
      for (int64_t c = 0; c < kChannels; ++c) channels.push_back(x.data()[at(c)]);
      channels = kept(channels, 2, 4);
      for (int64_t c = 0; c < kChannels; ++c) expected[at(c)] = channels[static_cast<size_t>(c)];
    }
  }
  for (const Order order : {Order::RowMajor, Order::ImageSlabs, Order::ChannelBlocks}) {
    SemiSparseActivation layer;
    const Variable in = Variable::leaf(x.to(order));
    const Variable y = layer(in);
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(y.value().to_vector(), expected);
    backward(y, dy);
    const std::vector<float> given = dy.to_vector(), found = in.gradient().to_vector();
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], expected[i] == 0.0f ? 0.0f : given[i]) << i;
    }
  }
}

void expect_differences_as_gradients(const Shape& shape) {
  // Where the choice does not change, it is linear: differences are the derivative.
  const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape);
  Sequential model;
  model.add<SquaredReLU>("act");
  model.add<SemiSparseActivation>("keep");
  const Variable in = Variable::leaf(x);
  backward(model(in), dy);
  const auto loss = [&](const Tensor& at) {
    const std::vector<float> y = model(Variable(at)).value().to_vector(), w = dy.to_vector();
    double sum = 0.0;
    for (size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * double{w[i]};
    return sum;
  };
  for (int64_t i = 0; i < x.numel(); ++i) {
    constexpr float kStep = 1e-3f;
    Tensor more = x.clone(), less = x.clone();
    more.mutable_data()[i] += kStep;
    less.mutable_data()[i] -= kStep;
    EXPECT_NEAR(in.gradient().data()[i], (loss(more) - loss(less)) / (2.0 * double{kStep}), 5e-3)
        << i;
  }
}

TEST(SemiSparseActivation, KeepsItsChoiceThroughSmallSteps) {
  expect_differences_as_gradients({4, 8});
  expect_differences_as_gradients({2, 8, 3, 2});
}

TEST(SemiSparseActivation, KeepsTheFirstOfEqualOnesAndZeros) {
  SemiSparseActivation layer;
  const Tensor x = Tensor::from({2, 4}, std::vector<float>{1, -1, 1, 1, 0, 0, 0, 3});
  EXPECT_EQ(layer(x).value().to_vector(), (std::vector<float>{1, -1, 0, 0, 0, 0, 0, 3}));
}

TEST(SemiSparseActivation, MakesALinearLayerBehindItRunSparseProducts) {
  Sequential model;
  model.add<SemiSparseActivation>("keep");
  model.add<Linear>("fc", {.in_features = 128, .out_features = 128});
  const Tensor x = test::normal_tensor("x", {64, 128});
  const Variable y = model(Variable(x));
  EXPECT_EQ(y.creator()->name(), "linear_sparse_input");
  SemiSparseActivation keep;
  const auto& fc = dynamic_cast<const Linear&>(*model.children()[1].second);
  const Variable dense = linear(Variable(keep(x).value()), fc.weight(), Variable::of(fc.bias()));
  EXPECT_EQ(dense.creator()->name(), "linear");
  EXPECT_LT(test::largest_error(y.value().to_vector(), dense.value().to_vector()), 1e-5);
}

TEST(SemiSparseActivation, MistakesNameTheLayerAndTheShape) {
  Sequential model;
  model.add<SemiSparseActivation>("act");
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({3, 10}));
      },
      "layer 'act' (semi_sparse_activation): activations of shape [3, 10] "
      "have 10 features, not divisible by m = 4");
  expect_throws<ShapeError>(
      [&] {
        model(Tensor::zeros({3, 6, 8, 8}));
      },
      "layer 'act' (semi_sparse_activation): activations of shape [3, 6, 8, 8] "
      "have 6 channels, not divisible by m = 4");
  expect_throws<ConfigError>([] { SemiSparseActivation({.n = 2, .m = 17}); },
                             "N:M needs 1 <= N <= M <= 16, found 2:17");
  expect_throws<ConfigError>([] { SemiSparseActivation({.n = 0, .m = 4}); }, "found 0:4");
  expect_throws<ConfigError>([] { SemiSparseActivation({.n = 5, .m = 4}); }, "found 5:4");
}

TEST(SemiSparseActivation, IsMadeFromOptions) {
  LayerRegistry registry("layer");
  register_layers(registry);
  const auto make = [&](const Config& options) {
    return registry.find("semi_sparse_activation", options).make(options, {12});
  };
  const Config plain = Config::map();
  EXPECT_EQ(make(plain)->output_shape({12}), (Shape{12}));
  EXPECT_EQ(plain.required<int64_t>("n"), 2);
  EXPECT_EQ(plain.required<int64_t>("m"), 4);
  expect_throws<ConfigError>([&] { make(Config::map({{"m", int64_t{32}}})); }, "from 1 to 16");
  expect_throws<ConfigError>([&] { make(Config::map({{"n", int64_t{5}}})); }, "at most m");
  expect_throws<ConfigError>([&] { make(Config::map({{"n", int64_t{0}}})); }, "n");
  const auto five = make(Config::map({{"m", int64_t{5}}, {"n", int64_t{2}}}));
  expect_throws<ShapeError>([&] { five->output_shape({12}); },
                            "12 features, not divisible by m = 5");
}

}  // namespace
}  // namespace lacuna::semi_sparse_activation_test
