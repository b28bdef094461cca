#include "lacuna/framework/core/convolution_shape.h"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::convolution_shape_test {
namespace {

// Places along one side, counted: where the last tap is still within the padded image.
int64_t counted(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  int64_t count = 0;
  for (int64_t first = -padding; first + dilation * (kernel - 1) < size + padding;
       first += stride) {
    ++count;
  }
  return count;
}

TEST(Window, CountsThePlacesOfTheKernel) {
  for (int64_t size = 1; size <= 9; ++size) {
    for (int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (int64_t stride = 1; stride <= 3; ++stride) {
        for (int64_t padding = 0; padding <= 2; ++padding) {
          for (int64_t dilation = 1; dilation <= 3; ++dilation) {
            const int64_t expected = counted(size, kernel, stride, padding, dilation);
            const Window window{{kernel, 1}, {stride, 1}, {padding, 0}, {dilation, 1}};
            const Window across{{1, kernel}, {1, stride}, {0, padding}, {1, dilation}};
            if (expected > 0) {
              EXPECT_EQ(window.output({size, 5}, "x"), (Extent{expected, 5}));
              EXPECT_EQ(across.output({5, size}, "x"), (Extent{5, expected}));
            } else {
              expect_throws<ShapeError>([&] { window.output({size, 5}, "x"); }, "does not fit");
              expect_throws<ShapeError>([&] { across.output({5, size}, "x"); }, "does not fit");
            }
          }
        }
      }
    }
  }
}

TEST(LengthWindow, IsAWindowOnImagesOfHeightOne) {
  const LengthWindow window{.kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
  EXPECT_EQ(window.on_images(), (Window{{1, 3}, {1, 2}, {0, 1}, {1, 2}}));
  for (int64_t length = 3; length <= 9; ++length) {
    EXPECT_EQ((Extent{1, window.output(length, "x")}), window.on_images().output({1, length}, "x"));
  }
  expect_throws<ShapeError>([&] { window.output(2, "conv1"); },
                            "conv1: a kernel of 3 with dilation 2 does not fit a length of 2 with "
                            "padding 1");
  expect_throws<ShapeError>([] { LengthWindow{.kernel = 3}.output(2, "conv1"); },
                            "conv1: a kernel of 3 does not fit a length of 2 with padding 0");
  for (const LengthWindow& bad : {LengthWindow{.kernel = 0}, LengthWindow{.stride = 0},
                                  LengthWindow{.padding = -1}, LengthWindow{.dilation = 0}}) {
    expect_throws<ShapeError>([&] { bad.output(8, "conv1"); },
                              "conv1: kernel, stride and dilation must be at least 1 and padding "
                              "at least 0, found kernel ");
  }
}

TEST(Window, SaysWhatDoesNotFit) {
  expect_throws<ShapeError>(
      [] {
        Window{{5, 3}}.output({4, 4}, "conv1");
      },
      "conv1: a kernel of 5x3 does not fit an image of 4x4 with padding 0x0");
  expect_throws<ShapeError>(
      [] {
        Window{{3, 3}, {1, 1}, {0, 1}, {2, 2}}.output({4, 4}, "conv1");
      },
      "conv1: a kernel of 3x3 with dilation 2x2 does not fit an image of 4x4 with padding 0x1");
  expect_throws<ShapeError>(
      [] {
        Window{{3, 3}}.output({0, 4}, "pool");
      },
      "does not fit an image of 0x4");
}

TEST(Window, NumbersOutOfRangeAreRefused) {
  const std::string words =
      "conv1: kernel, stride and dilation must be at least 1 and padding at "
      "least 0, found kernel ";
  const auto refuse = [&](const Window& window, const std::string& found) {
    expect_throws<ShapeError>([&] { window.output({8, 8}, "conv1"); }, words + found);
  };
  refuse({{0, 3}}, "0x3, stride 1x1, padding 0x0, dilation 1x1");
  refuse({{3, -1}}, "3x-1");
  refuse({{3, 3}, {1, 0}}, "3x3, stride 1x0");
  refuse({{3, 3}, {1, 1}, {-1, 0}}, "3x3, stride 1x1, padding -1x0");
  refuse({{3, 3}, {1, 1}, {0, 0}, {0, 1}}, "3x3, stride 1x1, padding 0x0, dilation 0x1");
}

TEST(ConvolutionShape, GivesTheShapesOfItsTensors) {
  const ConvolutionShape shape{.batch = 5,
                               .in_channels = 6,
                               .out_channels = 4,
                               .groups = 2,
                               .image = {9, 8},
                               .window = {{3, 2}, {2, 1}, {1, 0}}};
  EXPECT_EQ(shape.output(), (Extent{5, 7}));
  EXPECT_EQ(shape.taps(), 6);
  EXPECT_EQ(shape.input_shape(), (Shape{5, 6, 9, 8}));
  EXPECT_EQ(shape.weight_shape(), (Shape{4, 3, 3, 2}));
  EXPECT_EQ(shape.output_shape(), (Shape{5, 4, 5, 7}));
  EXPECT_EQ(shape.operations(10), 2.0 * 10 * 5 * 5 * 7);
  // Past 2^31 and past 2^63.
  ConvolutionShape large = shape;
  large.batch = int64_t{1} << 20;
  EXPECT_EQ(large.operations(int64_t{1} << 40), 70.0 * 0x1p60);
}

TEST(ConvolutionShape, AKernelThatDoesNotFitIsRefused) {
  const ConvolutionShape shape{1, 1, 1, 1, {2, 2}, {{3, 3}}};
  expect_throws<ShapeError>([&] { shape.output_shape(); },
                            "convolution: a kernel of 3x3 does not fit an image of 2x2");
}

}  // namespace
}  // namespace lacuna::convolution_shape_test
