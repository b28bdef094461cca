#include "lacuna/layers/convolutions/pooling.h"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/ops/pooling.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::pooling_test {
namespace {

const Tensor& images() {
  static const Tensor x = test::normal_tensor("x", {2, 3, 7, 6});
  return x;
}

void expect_computes(Module& layer, const Variable& expected) {
  const Variable y = layer(images());
  EXPECT_EQ(y.value().to_vector(), expected.value().to_vector());
  EXPECT_EQ(y.shape().without_batch(), layer.output_shape({3, 7, 6}));
  EXPECT_TRUE(layer.parameters().empty());
}

TEST(PoolingLayers, PassTheirOptionsOn) {
  MaxPool2d max({.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  expect_computes(max, max_pool2d(images(), {{3, 2}, {2, 1}, {1, 0}, {1, 2}}));
  EXPECT_EQ(max.type(), "max_pool");
  for (const bool count : {true, false}) {
    AvgPool2d average(
        {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .count_include_pad = count});
    expect_computes(average,
                    avg_pool2d(images(), {{3, 2}, {2, 1}, {1, 1}}, {.count_include_pad = count}));
    EXPECT_EQ(average.type(), "avg_pool");
  }
  GlobalAveragePool global;
  expect_computes(global, global_average_pool(images()));
  EXPECT_EQ(global.output_shape({3, 7, 6}), (Shape{3}));
  EXPECT_EQ(global.type(), "global_average_pool");
  SubsamplePad shortcut({.channels = 8, .stride = {3, 2}});
  expect_computes(shortcut, subsample_pad(images(), {3, 2}, 8));
  EXPECT_EQ(shortcut.output_shape({3, 7, 6}), (Shape{8, 3, 3}));
  EXPECT_EQ(shortcut.type(), "subsample_pad");
}

TEST(PoolingLayers, RefuseShapesThatDoNotFit) {
  Sequential model;
  const auto refuses = [](const Module& layer, const Shape& shape, const std::string& message) {
    expect_throws<ShapeError>([&] { layer.output_shape(shape); }, message);
  };
  const Module& max = model.add<MaxPool2d>("max", {.kernel = {3, 3}});
  refuses(max, {12},
          "layer 'max' (max_pool): needs examples of shape [channels, height, width] or [channels, "
          "length], found [12]");
  refuses(max, {3, 2, 8},
          "layer 'max' (max_pool): a kernel of 3x3 does not fit an image of 2x8 with padding 0x0");
  const Module& average = model.add<AvgPool2d>("average", {.kernel = {3, 3}, .stride = {0, 1}});
  refuses(average, {8}, "layer 'average' (avg_pool): needs examples of shape [channels,");
  refuses(max, {3, 8}, "a kernel of 3x3 does not fit an image of 1x8 with padding 0x0");
  refuses(average, {3, 8, 8}, "layer 'average' (avg_pool): kernel, stride and dilation must be");
  const Module& global = model.add<GlobalAveragePool>("global");
  refuses(global, {3}, "layer 'global' (global_average_pool): needs examples of shape [channels,");
  const Module& shortcut = model.add<SubsamplePad>("shortcut", {.channels = 2});
  refuses(shortcut, {3, 4, 4},
          "layer 'shortcut' (subsample_pad): needs a stride of at least 1 and at least the 3 "
          "channels of its input [3, 4, 4], found stride 2x2 and 2 channels");
  refuses(shortcut, {3}, "layer 'shortcut' (subsample_pad): needs examples of shape [channels,");
}

}  // namespace
}  // namespace lacuna::pooling_test
