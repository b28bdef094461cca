#include "lacuna/framework/layouts/cost/convolution_sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lacuna::convolution_sample_test {
namespace {

double operations(const ConvolutionShape& s) { return s.operations(s.weight_shape().numel()); }

TEST(ConvolutionSample, OfOneThatIsSmallIsItself) {
  const ConvolutionShape small{20, 16, 32, 1, {32, 30}, {{3, 3}, {2, 1}, {1, 1}}};
  EXPECT_EQ(convolution_sample(small), small);
  ConvolutionShape many = small;
  many.batch = 1000;
  ConvolutionShape sample = many;
  sample.batch = 64;
  EXPECT_EQ(convolution_sample(many), sample);
  many.batch = 0;
  EXPECT_EQ(convolution_sample(many).batch, 1);
}

TEST(ConvolutionSample, TakesExamplesFirstAndThenPartsOfTheImages) {
  // 2 · 64 · 64 · 9 · 64 · 64 = 0.3 · 10⁹ operations an example.
  const ConvolutionShape resnet18{32, 64, 64, 1, {64, 64}, {{3, 3}, {1, 1}, {1, 1}}};
  ConvolutionShape expected = resnet18;
  expected.batch = 16;
  expected.image.height = 32;
  EXPECT_EQ(convolution_sample(resnet18), expected);
}

// A kernel's sizes, strides and dilation are what it costs by, and stay.
TEST(ConvolutionSample, IsBoundedWhateverTheShape) {
  const std::vector<ConvolutionShape> shapes = {
      {64, 3, 64, 1, {32, 32}, {{31, 31}, {1, 1}, {500, 500}}},
      {1, 64, 64, 1, {4000, 3000}, {{3, 3}, {1, 1}, {1, 1}}},
      {64, 1, 1, 1, {20000, 20000}, {{1, 1}, {1, 1}, {0, 0}}},
      {64, 2048, 4096, 1, {200, 1}, {{3, 3}, {3, 2}, {2, 1}, {5, 1}}},
      {64, 512, 512, 1, {1, 100000}, {{1, 9}, {1, 4}, {0, 4}}},
      {256, 100000, 100000, 1, {8, 8}, {{1, 1}, {1, 1}, {0, 0}}},
  };
  for (const ConvolutionShape& shape : shapes) {
    SCOPED_TRACE(shape.input_shape().to_string() + " by " + shape.weight_shape().to_string());
    const ConvolutionShape sample = convolution_sample(shape);
    EXPECT_LE(operations(sample), 4e9);
    EXPECT_LE(sample.input_shape().numel() + sample.output_shape().numel(), int64_t{1} << 26);
    EXPECT_GE(sample.output().height, 1);
    EXPECT_GE(sample.output().width, 1);
    EXPECT_GE(sample.image.height, 1);
    EXPECT_GE(sample.image.width, 1);
    EXPECT_GE(sample.batch, std::min<int64_t>(shape.batch, 16));
    EXPECT_EQ(sample.window.kernel, shape.window.kernel);
    EXPECT_EQ(sample.window.stride, shape.window.stride);
    EXPECT_EQ(sample.window.dilation, shape.window.dilation);
    EXPECT_LE(sample.output().height, shape.output().height);
    EXPECT_LE(sample.output().width, shape.output().width);
  }
}

}  // namespace
}  // namespace lacuna::convolution_sample_test
