#include "lacuna/framework/kernels/images/pooling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/kernels/images/image_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "throws.h"

namespace lacuna::pooling_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Case {
  Shape shape;
  Window window;
};

std::vector<Case> cases() {
  return {{{2, 3, 8, 8}, {{2, 2}, {2, 2}}},
          {{17, 2, 7, 6}, {{3, 3}, {2, 2}, {1, 1}}},
          {{1, 1, 5, 9}, {{3, 2}, {1, 3}, {1, 0}}},
          {{3, 2, 9, 8}, {{3, 2}, {2, 1}, {1, 1}, {2, 3}}},
          {{1, 2, 3, 2}, {{7, 9}, {1, 2}, {3, 4}}},  // kernels larger than the image
          {{1, 1, 4, 3}, {{3, 3}, {2, 1}, {6, 7}, {3, 4}}},
          {{2, 2, 1, 1}, {{1, 1}}},
          {{2, 2, 4, 4}, {{4, 4}}},
          {{2, 1, 6, 6}, {{1, 1}, {3, 3}}},
          {{2, 1, 5, 5}, {{2, 2}, {3, 3}}},  // pixels that no window holds
          {{0, 3, 4, 4}, {{2, 2}, {2, 2}}}};
}

// The pixels under the window at a place, row by row, as indices in a plane.
std::vector<int64_t> pixels_under(const Case& c, int64_t place) {
  const Extent out = c.window.output({c.shape[2], c.shape[3]}, "test");
  std::vector<int64_t> pixels;
  for (int64_t ky = 0; ky < c.window.kernel.height; ++ky) {
    for (int64_t kx = 0; kx < c.window.kernel.width; ++kx) {
      const int64_t row = place / out.width * c.window.stride.height +
                          ky * c.window.dilation.height - c.window.padding.height;
      const int64_t column = place % out.width * c.window.stride.width +
                             kx * c.window.dilation.width - c.window.padding.width;
      const bool is_there = row >= 0 && row < c.shape[2] && column >= 0 && column < c.shape[3];
      if (is_there) pixels.push_back(row * c.shape[3] + column);
    }
  }
  return pixels;
}

Shape output_shape(const Case& c) {
  const Extent out = c.window.output({c.shape[2], c.shape[3]}, "test");
  return {c.shape[0], c.shape[1], out.height, out.width};
}

TEST(MaxPool, TakesTheLargestPixelAndItsFirstIndex) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.shape.to_string());
    // Few different values, most below zero: ties, and windows that padding would win.
    Tensor x = test::normal_tensor("x", c.shape);
    for (float& value : x.mutable_storage()) value = std::floor(2.0f * value) - 3.0f;
    const MaxPool pool = max_pool(x, c.window);
    ASSERT_EQ(pool.y.shape(), output_shape(c));
    ASSERT_EQ(static_cast<int64_t>(pool.index.size()), pool.y.numel());
    const int64_t places = pool.y.shape()[2] * pool.y.shape()[3];
    for (int64_t i = 0; i < pool.y.numel(); ++i) {
      const float* plane = x.data() + i / places * c.shape[2] * c.shape[3];
      const std::vector<int64_t> pixels = pixels_under(c, i % places);
      if (pixels.empty()) {
        ASSERT_EQ(pool.index[static_cast<size_t>(i)], -1);
        continue;
      }
      int64_t best = pixels.front();
      for (const int64_t pixel : pixels) best = plane[pixel] > plane[best] ? pixel : best;
      ASSERT_EQ(pool.y.data()[i], plane[best]);
      ASSERT_EQ(pool.index[static_cast<size_t>(i)], best);
    }
  }
}

TEST(MaxPool, TheGradientGoesToThePixelThatWon) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.shape.to_string());
    const MaxPool pool = max_pool(test::normal_tensor("x", c.shape), c.window);
    const Tensor dy = test::normal_tensor("dy", pool.y.shape());
    std::vector<double> expected(static_cast<size_t>(c.shape.numel()));
    const int64_t places = dy.shape()[2] * dy.shape()[3], pixels = c.shape[2] * c.shape[3];
    for (int64_t i = 0; i < dy.numel(); ++i) {
      const int32_t pixel = pool.index[static_cast<size_t>(i)];
      if (pixel >= 0) expected[static_cast<size_t>(i / places * pixels + pixel)] += dy.data()[i];
    }
    const Tensor dx = max_pool_gradient(dy, pool.index, c.shape);
    EXPECT_EQ(dx.shape(), c.shape);
    EXPECT_LT(test::largest_error(dx.to_vector(), expected), 1e-6);  // a few additions
  }
}

TEST(MaxPool, ANaNWinsWhereverItStands) {
  const Window window{{1, 3}, {1, 3}};
  const std::vector<float> values = {kNaN, 1, 2, 1, kNaN, 2, 1, 2, kNaN, kNaN, 5, kNaN};
  const MaxPool pool = max_pool(Tensor::from({1, 1, 1, 12}, values), window);
  for (const float value : pool.y.to_vector()) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(pool.index, (std::vector<int32_t>{0, 4, 8, 9}));
}

TEST(MaxPool, InfinitiesAreValuesAsOthers) {
  const Window window{{1, 2}, {1, 2}};
  const std::vector<float> values = {-kInfinity, -kInfinity, kInfinity, 3, -kInfinity, -5};
  const MaxPool pool = max_pool(Tensor::from({1, 1, 1, 6}, values), window);
  EXPECT_EQ(pool.y.to_vector(), (std::vector<float>{-kInfinity, kInfinity, -5}));
  EXPECT_EQ(pool.index, (std::vector<int32_t>{0, 2, 5}));
}

// Padding as wide as the kernel: some windows hold nothing.
TEST(MaxPool, AWindowOfPaddingAloneHasNoPixel) {
  const MaxPool pool = max_pool(Tensor::full({1, 1, 1, 1}, 2.0f), {{1, 1}, {1, 1}, {0, 1}});
  EXPECT_EQ(pool.y.to_vector(), (std::vector<float>{-kInfinity, 2.0f, -kInfinity}));
  EXPECT_EQ(pool.index, (std::vector<int32_t>{-1, 0, -1}));
  EXPECT_EQ(max_pool_gradient(Tensor::full({1, 1, 1, 3}, 4.0f), pool.index, {1, 1, 1, 1}).item(),
            4.0f);
}

double divisor(const Case& c, size_t pixels, CountPadding count) {
  if (count == CountPadding::No) return static_cast<double>(std::max<size_t>(pixels, 1));
  return static_cast<double>(c.window.kernel.height * c.window.kernel.width);
}

TEST(AvgPool, DividesByThePixelsOrByTheKernel) {
  for (const Case& c : cases()) {
    for (const CountPadding count : {CountPadding::No, CountPadding::Yes}) {
      SCOPED_TRACE(c.shape.to_string());
      const Tensor x = test::normal_tensor("x", c.shape);
      const Tensor y = avg_pool(x, c.window, count);
      ASSERT_EQ(y.shape(), output_shape(c));
      const int64_t places = y.shape()[2] * y.shape()[3];
      std::vector<double> expected;
      for (int64_t i = 0; i < y.numel(); ++i) {
        const std::vector<int64_t> pixels = pixels_under(c, i % places);
        double sum = 0.0;
        for (const int64_t p : pixels) sum += x.data()[i / places * c.shape[2] * c.shape[3] + p];
        expected.push_back(sum / divisor(c, pixels.size(), count));
      }
      EXPECT_LT(test::largest_error(y.to_vector(), expected), 1e-6);  // a few additions
    }
  }
}

TEST(AvgPool, TheGradientIsSharedOut) {
  for (const Case& c : cases()) {
    for (const CountPadding count : {CountPadding::No, CountPadding::Yes}) {
      SCOPED_TRACE(c.shape.to_string());
      const Tensor dy = test::normal_tensor("dy", output_shape(c));
      const int64_t places = dy.shape()[2] * dy.shape()[3];
      std::vector<double> expected(static_cast<size_t>(c.shape.numel()));
      for (int64_t i = 0; i < dy.numel(); ++i) {
        const std::vector<int64_t> pixels = pixels_under(c, i % places);
        for (const int64_t p : pixels) {
          expected[static_cast<size_t>(i / places * c.shape[2] * c.shape[3] + p)] +=
              dy.data()[i] / divisor(c, pixels.size(), count);
        }
      }
      const Tensor dx = avg_pool_gradient(dy, c.window, count, c.shape);
      EXPECT_EQ(dx.shape(), c.shape);
      EXPECT_LT(test::largest_error(dx.to_vector(), expected), 1e-6);  // a few additions
    }
  }
}

TEST(AvgPool, NaNPassesThrough) {
  const std::vector<float> values = {kNaN, 1, 2, 3};
  const std::vector<float> y =
      avg_pool(Tensor::from({1, 1, 1, 4}, values), {{1, 2}, {1, 2}}, CountPadding::No).to_vector();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 2.5f);
}

TEST(Pooling, AWindowThatDoesNotFitIsRefused) {
  const Tensor x = Tensor::zeros({1, 1, 2, 3});
  expect_throws<ShapeError>(
      [&] {
        max_pool(x, {{3, 3}});
      },
      "pooling: a kernel of 3x3 does not fit an image of 2x3");
  expect_throws<ShapeError>(
      [&] {
        avg_pool(x, {{3, 3}}, CountPadding::No);
      },
      "pooling: a kernel of 3x3 does not fit an image of 2x3");
}

TEST(PlaneMeans, AreTheMeansOfPlanesInEveryOrder) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor x = test::normal_tensor("x", shape);
    const int64_t pixels = shape[2] * shape[3];
    std::vector<double> expected(static_cast<size_t>(shape[0] * shape[1]));
    for (int64_t i = 0; i < x.numel(); ++i) {
      expected[static_cast<size_t>(i / pixels)] += x.data()[i] / static_cast<double>(pixels);
    }
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(shape.to_string() + " in " + to_string(order));
      const Tensor y = plane_means(test::with_dirty_padding(x, order));
      EXPECT_EQ(y.shape(), (Shape{shape[0], shape[1]}));
      EXPECT_EQ(y.order(), Order::RowMajor);
      EXPECT_LT(test::largest_error(y.to_vector(), expected), 1e-6);  // sums in double, rounded
    }
  }
}

TEST(PlaneMeans, TheGradientIsSharedOutInEveryOrder) {
  const test::OneThread one;
  for (const Shape& shape : test::image_shapes()) {
    const Tensor dy = test::normal_tensor("dy", Shape{shape[0], shape[1]});
    const int64_t pixels = shape[2] * shape[3];
    std::vector<double> expected;
    for (int64_t i = 0; i < shape.numel(); ++i) {
      expected.push_back(dy.data()[i / pixels] / static_cast<double>(pixels));
    }
    for (const Order order : test::kImageOrders) {
      SCOPED_TRACE(shape.to_string() + " in " + to_string(order));
      const Tensor dx = plane_means_gradient(dy, shape, order);
      EXPECT_EQ(dx.shape(), shape);
      EXPECT_EQ(dx.order(), order);
      EXPECT_LT(test::largest_error(dx.to_vector(), expected), 1e-6);  // two roundings
      // Padding too is zero: nothing is in it that a convolution would read.
      Tensor cleared = dx.clone();
      cleared.clear_padding();
      EXPECT_TRUE(std::ranges::equal(cleared.storage(), dx.storage()));
    }
  }
}

TEST(PlaneMeans, ANaNIsThatOfItsPlaneAlone) {
  const Shape shape{17, 18, 3, 5};
  for (const int64_t at : {int64_t{0}, int64_t{2000}, shape.numel() - 1}) {
    Tensor x = test::normal_tensor("x", shape);
    x.mutable_data()[at] = kNaN;
    for (const Order order : test::kImageOrders) {
      const std::vector<float> y = plane_means(x.to(order)).to_vector();
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), static_cast<int64_t>(i) == at / 15);
      }
    }
  }
}

TEST(Pooling, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const Tensor x = test::normal_tensor("x", {37, 5, 9, 8});
  const Window window{{3, 3}, {2, 2}, {1, 1}};
  std::vector<std::vector<float>> results[2];
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const MaxPool pool = max_pool(x, window);
    results[threads - 1] = {
        pool.y.to_vector(),
        max_pool_gradient(pool.y, pool.index, x.shape()).to_vector(),
        avg_pool(x, window, CountPadding::No).to_vector(),
        avg_pool_gradient(pool.y, window, CountPadding::No, x.shape()).to_vector(),
        plane_means(x).to_vector(),
        plane_means(x.to(Order::ImageSlabs)).to_vector()};
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

// Windows over padding that is far larger than the image: each still sees the pixels that it did.
TEST(Pooling, GoesThroughNoPaddingPixelByPixel) {
  const Shape shape{1, 2, 8, 8};
  const Window window{.kernel = {65536, 65536}, .stride = {1, 1}, .padding = {32768, 32768}};
  const Tensor x = test::normal_tensor("x", shape);
  const MaxPool pool = max_pool(x, window);
  ASSERT_EQ(pool.y.shape(), (Shape{1, 2, 9, 9}));
  const float largest = *std::max_element(x.data(), x.data() + 64);
  for (int64_t i = 0; i < 81; ++i) EXPECT_EQ(pool.y.data()[i], largest);
  const Tensor means = avg_pool(x, window, CountPadding::No);
  float sum = 0.0f;
  for (int64_t i = 0; i < 64; ++i) sum += x.data()[i];
  EXPECT_EQ(means.data()[0], sum / 64.0f);
  EXPECT_EQ(avg_pool_gradient(means, window, CountPadding::No, shape).shape(), shape);
}

}  // namespace
}  // namespace lacuna::pooling_test
