// Dense convolutions against sums in double, with either algorithm and on whichever provider.
#include "lacuna/framework/kernels/dense/convolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/kernels/dense/convolution_sums.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::convolution_test {
namespace {

constexpr Order kOrders[] = {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs,
                             Order::ChannelBlocks};

std::vector<ConvolutionShape> shapes() {
  const Window same{{3, 3}, {1, 1}, {1, 1}};
  return {
      {2, 3, 5, 1, {8, 8}, same},
      {3, 16, 32, 1, {9, 7}, same},
      {5, 16, 17, 1, {6, 6}, same},
      {5, 3, 16, 1, {11, 10}, same},
      {1, 32, 16, 1, {4, 4}, same},
      {33, 4, 3, 1, {5, 9}, same},
      {2, 16, 16, 1, {1, 1}, same},  // a single pixel
      {4, 16, 16, 1, {12, 12}, {{3, 3}}},
      {3, 16, 48, 1, {7, 5}, {{1, 1}}},
      {3, 24, 20, 1, {7, 5}, same},  // blocks of channels that end in padding
      {3, 20, 40, 1, {9, 8}, {{3, 3}, {2, 2}, {1, 1}}},
      {2, 24, 36, 2, {6, 6}, same},
      {3, 20, 20, 20, {7, 8}, same},
      {3, 5, 4, 1, {8, 9}, {{1, 1}, {2, 2}}},
      {3, 16, 16, 1, {9, 8}, {{3, 3}, {2, 2}, {1, 1}}},
      {2, 3, 16, 1, {13, 12}, {{7, 7}, {2, 2}, {3, 3}}},
      {2, 5, 6, 1, {12, 13}, {{3, 2}, {3, 2}, {0, 1}, {1, 2}}},
      {2, 16, 16, 1, {12, 13}, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}},
      {2, 2, 3, 1, {5, 20}, {{1, 7}, {1, 1}, {0, 3}}},
      {2, 3, 2, 1, {4, 4}, {{2, 2}, {1, 1}, {3, 3}}},  // outputs wider than inputs
      {2, 3, 2, 1, {6, 6}, {{6, 6}}},                  // one output
      {3, 6, 4, 2, {7, 6}, same},
      {2, 32, 64, 2, {6, 6}, same},
      {2, 32, 16, 4, {6, 5}, {{3, 3}, {2, 2}, {1, 1}}},
      {3, 16, 16, 16, {7, 8}, same},  // depthwise
      {3, 5, 5, 5, {7, 8}, {{3, 3}, {2, 1}, {1, 1}}},
      {2, 4, 12, 4, {6, 6}, same},  // three outputs for each input
      {1, 1, 1, 1, {1, 1}, {{1, 1}}},
  };
}

struct Operands {
  explicit Operands(const ConvolutionShape& s)
      : x(test::normal_tensor("x", s.input_shape())),
        weight(test::normal_tensor("weight", s.weight_shape())),
        dy(test::normal_tensor("dy", s.output_shape())),
        bias(test::normal_values("bias", s.out_channels)) {}
  Tensor x, weight, dy;
  std::vector<float> bias;
};

// Rounding of a few hundred products of normal values, of the largest sum; Winograd's
// transformations lose another digit.
double tolerance(ConvolutionAlgorithm algorithm) {
  return algorithm == ConvolutionAlgorithm::Direct ? 5e-6 : 1e-4;
}

class Convolution : public testing::TestWithParam<ConvolutionAlgorithm> {};

TEST_P(Convolution, ForwardIsTheSumOfTheDefinition) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(test::name_of(s));
    const Operands o(s);
    auto expected = test::convolution_sums(s, o.x, o.weight, o.dy).y;
    const Tensor plain = dense_convolution(s, GetParam(), o.weight.data(), o.x, nullptr);
    EXPECT_EQ(plain.shape(), s.output_shape());
    EXPECT_EQ(plain.order(), dense_image_order(s.out_channels));
    EXPECT_LT(test::error_of_largest(plain.to_vector(), expected), tolerance(GetParam()));
    test::add_bias(s, o.bias, expected);
    const Tensor y = dense_convolution(s, GetParam(), o.weight.data(), o.x, o.bias.data());
    EXPECT_LT(test::error_of_largest(y.to_vector(), expected), tolerance(GetParam()));
  }
}

TEST_P(Convolution, InputGradientIsTheSumOfTheDefinition) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(test::name_of(s));
    const Operands o(s);
    const Tensor dx = dense_convolution_input_gradient(s, GetParam(), o.weight.data(), o.dy);
    EXPECT_EQ(dx.shape(), s.input_shape());
    EXPECT_EQ(dx.order(), dense_image_order(s.in_channels));
    EXPECT_LT(
        test::error_of_largest(dx.to_vector(), test::convolution_sums(s, o.x, o.weight, o.dy).dx),
        tolerance(GetParam()));
  }
}

TEST_P(Convolution, WeightGradientIsTheSumOfTheDefinitionAndAccumulates) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(test::name_of(s));
    const Operands o(s);
    std::vector<double> expected = test::convolution_sums(s, o.x, o.weight, o.dy).dw;
    std::vector<float> gradient(expected.size(), NAN);  // not read
    dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::No, gradient);
    EXPECT_LT(test::error_of_largest(gradient, expected), tolerance(GetParam()));
    dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::Yes, gradient);
    for (double& value : expected) value *= 2.0;
    EXPECT_LT(test::error_of_largest(gradient, expected), tolerance(GetParam()));
  }
}

TEST_P(Convolution, TakesImagesInAnyOrder) {
  for (const int64_t channels : {16, 18}) {
    const ConvolutionShape s{17, channels, 32, 1, {5, 4}, {{3, 3}, {1, 1}, {1, 1}}};
    const Operands o(s);
    std::vector<std::vector<float>> first;
    for (const Order order : kOrders) {
      const Tensor x = o.x.to(order), dy = o.dy.to(order);
      std::vector<float> gradient(static_cast<size_t>(o.weight.numel()));
      dense_convolution_weight_gradient(s, GetParam(), dy, x, Accumulate::No, gradient);
      const std::vector<std::vector<float>> results = {
          dense_convolution(s, GetParam(), o.weight.data(), x, o.bias.data()).to_vector(),
          dense_convolution_input_gradient(s, GetParam(), o.weight.data(), dy).to_vector(),
          gradient};
      if (first.empty()) first = results;
      EXPECT_EQ(results, first) << to_string(order);
    }
  }
}

TEST_P(Convolution, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const ConvolutionShape& s :
       {ConvolutionShape{37, 16, 16, 1, {9, 10}, {{3, 3}, {1, 1}, {1, 1}}},
        ConvolutionShape{20, 6, 9, 3, {8, 8}, {{3, 3}, {2, 2}, {1, 1}}}}) {
    const Operands o(s);
    std::vector<std::vector<float>> results[3];
    for (size_t i = 0; i < 3; ++i) {
      set_num_threads(i == 2 ? 5 : static_cast<int>(i) + 1);
      std::vector<float> gradient(static_cast<size_t>(o.weight.numel()));
      dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::No, gradient);
      results[i] = {
          dense_convolution(s, GetParam(), o.weight.data(), o.x, o.bias.data()).to_vector(),
          dense_convolution_input_gradient(s, GetParam(), o.weight.data(), o.dy).to_vector(),
          gradient};
    }
    set_num_threads(before);
    EXPECT_EQ(results[0], results[1]) << test::name_of(s);
    EXPECT_EQ(results[0], results[2]) << test::name_of(s);
  }
}

TEST_P(Convolution, NoExamplesGiveAnEmptyOutputAndAZeroGradient) {
  const ConvolutionShape s{0, 16, 3, 1, {5, 5}, {{3, 3}}};
  const Operands o(s);
  EXPECT_EQ(dense_convolution(s, GetParam(), o.weight.data(), o.x, o.bias.data()).shape(),
            (Shape{0, 3, 3, 3}));
  EXPECT_EQ(dense_convolution_input_gradient(s, GetParam(), o.weight.data(), o.dy).shape(),
            (Shape{0, 16, 5, 5}));
  std::vector<float> gradient(static_cast<size_t>(o.weight.numel()), 2.0f);
  dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::Yes, gradient);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 2.0f));
  dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::No, gradient);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 0.0f));
}

// Batches that leave a smaller last block.
TEST_P(Convolution, AnyNumberOfExamples) {
  for (int64_t batch = 1; batch <= 20; ++batch) {
    const ConvolutionShape s{batch, 3, 16, 1, {8, 8}, {{3, 3}, {1, 1}, {1, 1}}};
    SCOPED_TRACE(batch);
    const Operands o(s);
    const test::ConvolutionSums expected = test::convolution_sums(s, o.x, o.weight, o.dy);
    std::vector<float> gradient(static_cast<size_t>(o.weight.numel()));
    dense_convolution_weight_gradient(s, GetParam(), o.dy, o.x, Accumulate::No, gradient);
    EXPECT_LT(test::error_of_largest(gradient, expected.dw), tolerance(GetParam()));
    EXPECT_LT(test::error_of_largest(
                  dense_convolution(s, GetParam(), o.weight.data(), o.x, nullptr).to_vector(),
                  expected.y),
              tolerance(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Convolution,
                         testing::Values(ConvolutionAlgorithm::Direct,
                                         ConvolutionAlgorithm::Winograd,
                                         ConvolutionAlgorithm{.is_winograd = true, .blocks = 1},
                                         ConvolutionAlgorithm{.is_winograd = true, .blocks = 3}),
                         [](const auto& parameter) {
                           const ConvolutionAlgorithm& a = parameter.param;
                           return std::string(a.is_winograd ? "Winograd" : "Direct") + "In" +
                                  std::to_string(a.blocks);
                         });

TEST(WinogradFor, BlocksHaveTilesEnoughAndSmallTransforms) {
  ConvolutionShape shape{128, 64, 64, 1, {8, 8}, {{3, 3}, {1, 1}, {1, 1}}};
  EXPECT_EQ(winograd_for(shape), (ConvolutionAlgorithm{.is_winograd = true, .blocks = 2}));
  shape.batch = 127;  // of 4 tiles each
  EXPECT_EQ(winograd_for(shape).blocks, 1);
  // 256 tiles of 36 floats, of 128 channels: 4.5 MiB an example.
  const ConvolutionShape large{20, 64, 64, 1, {64, 64}, {{3, 3}, {1, 1}, {1, 1}}};
  EXPECT_EQ(winograd_for(large).blocks, 3);
  shape.batch = 1 << 20;
  EXPECT_EQ(winograd_for(shape), ConvolutionAlgorithm::Winograd);
}

TEST(DenseImageOrder, BlocksAreForWholeBlocksOfChannels) {
  EXPECT_EQ(dense_image_order(15), Order::RowMajor);
  EXPECT_EQ(dense_image_order(3), Order::RowMajor);
  EXPECT_EQ(dense_image_order(16), dense_image_order(64));
}

}  // namespace
}  // namespace lacuna::convolution_test
