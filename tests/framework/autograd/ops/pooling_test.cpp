#include "lacuna/framework/autograd/ops/pooling.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::pooling_test {
namespace {

using test::ComplexArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  Shape x;
  Window window;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{2, 3, 4, 6}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {{2, 3, 5, 7}, {.kernel = {2, 2}, .stride = {2, 2}}},  // the last row and column drop out
      {{2, 2, 5, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
      {{1, 2, 4, 5}, {.kernel = {3, 3}}},  // windows overlap
      {{17, 2, 3, 4}, {.kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}}},
      {{2, 16, 2, 2}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {{1, 17, 3, 3}, {.kernel = {1, 1}, .stride = {2, 2}}},
      {{1, 1, 1, 1}, {.kernel = {1, 1}}},
  };
  return all;
}

Extent image_of(const Shape& x) { return {x[2], x[3]}; }

Shape pooled(const Case& c) {
  const Extent out = c.window.output(image_of(c.x), "definition");
  return {c.x[0], c.x[1], out.height, out.width};
}

// `visit(index of the output, index of the pixel)` of every pixel under every window.
template <class Visit>
void for_each_pixel(const Case& c, const Visit& visit) {
  const Shape y = pooled(c);
  const int64_t pixels = c.x[2] * c.x[3], places = y[2] * y[3];
  for (int64_t plane = 0; plane < c.x[0] * c.x[1]; ++plane) {
    test::for_each_pixel_under(c.window, image_of(c.x), [&](int64_t i, int64_t pixel, int64_t) {
      visit(static_cast<size_t>(plane * places + i), static_cast<size_t>(plane * pixels + pixel));
    });
  }
}

ComplexArray largest_of(const Case& c, const ComplexArray& x) {
  ComplexArray y(static_cast<size_t>(pooled(c).numel()), test::Complex(-1e30));
  for_each_pixel(c, [&](size_t to, size_t from) {
    if (x[from].real() > y[to].real()) y[to] = x[from];
  });
  return y;
}

ComplexArray mean_of(const Case& c, bool count_padding, const ComplexArray& x) {
  ComplexArray y(static_cast<size_t>(pooled(c).numel()));
  std::vector<double> counts(y.size());
  for_each_pixel(c, [&](size_t to, size_t from) {
    y[to] += x[from];
    ++counts[to];
  });
  const auto all = static_cast<double>(c.window.kernel.height * c.window.kernel.width);
  for (size_t i = 0; i < y.size(); ++i) y[i] /= count_padding ? all : counts[i];
  return y;
}

TEST(MaxPoolOp, DerivativesAgreeWithTheDefinition) {
  std::vector<Case> all = cases();
  all.push_back({{2, 2, 6, 5}, {.kernel = {2, 3}, .padding = {1, 1}, .dilation = {2, 2}}});
  for (const Case& c : all) {
    for (const Order order : test::image_orders()) {
      test::check_derivatives({
          .shapes = {c.x},
          .op = [&](const auto& in) { return max_pool2d(in[0], c.window); },
          .definition = [&](const auto& in) { return largest_of(c, in[0]); },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(MaxPoolOp, GivesTheGradientToTheFirstOfEqualPixels) {
  const Variable x = Variable::leaf(Tensor::full({1, 1, 2, 3}, 5.0f));
  const Variable y = max_pool2d(x, {.kernel = {2, 2}});
  EXPECT_EQ(y.value().to_vector(), std::vector<float>(2, 5.0f));
  backward(y, Tensor::from({1, 1, 1, 2}, std::vector<float>{1.0f, 10.0f}));
  EXPECT_EQ(x.gradient().to_vector(), (std::vector<float>{1, 10, 0, 0, 0, 0}));
}

// The zeros of the padding are larger than every pixel.
TEST(MaxPoolOp, NeverTakesPadding) {
  const Variable y = max_pool2d(Tensor::full({1, 1, 2, 2}, -3.0f),
                                {.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}});
  EXPECT_EQ(y.value().to_vector(), std::vector<float>(4, -3.0f));
}

TEST(AvgPoolOp, DerivativesAgreeWithTheDefinition) {
  for (const Case& c : cases()) {
    for (const bool count_padding : {true, false}) {
      for (const Order order : test::image_orders()) {
        test::check_derivatives({
            .shapes = {c.x},
            .op =
                [&](const auto& in) {
                  return avg_pool2d(in[0], c.window, {.count_include_pad = count_padding});
                },
            .definition = [&](const auto& in) { return mean_of(c, count_padding, in[0]); },
            .tolerance = 1e-6,
            .order = order,
        });
      }
    }
  }
}

TEST(AvgPoolOp, DividesByTheKernelOrByThePixelsUnderIt) {
  const Tensor x = Tensor::full({1, 1, 2, 2}, 4.0f);
  const Window window{.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}};
  EXPECT_EQ(avg_pool2d(x, window).value().to_vector(), std::vector<float>(4, 1.0f));
  EXPECT_EQ(avg_pool2d(x, window, {.count_include_pad = false}).value().to_vector(),
            std::vector<float>(4, 4.0f));
}

TEST(GlobalAveragePoolOp, DerivativesAgreeWithTheDefinition) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 2, 3, 5}, Shape{17, 3, 2, 2},
                             Shape{2, 16, 3, 1}, Shape{2, 17, 2, 3}}) {
    for (const Order order : test::image_orders()) {
      const int64_t planes = shape[0] * shape[1], pixels = shape[2] * shape[3];
      test::check_derivatives({
          .shapes = {shape},
          .op = [](const auto& in) { return global_average_pool(in[0]); },
          .definition =
              [&](const auto& in) {
                ComplexArray y(static_cast<size_t>(planes));
                for (size_t i = 0; i < in[0].size(); ++i) {
                  y[i / static_cast<size_t>(pixels)] += in[0][i] / static_cast<double>(pixels);
                }
                return y;
              },
          .tolerance = 1e-6,
          .order = order,
      });
    }
  }
}

TEST(SubsamplePadOp, DerivativesAgreeWithTheDefinition) {
  struct Subsampling {
    Shape x;
    Extent stride;
    int64_t channels;
  };
  for (const Subsampling& s : std::vector<Subsampling>{{{2, 3, 4, 6}, {2, 2}, 6},
                                                       {{2, 3, 5, 7}, {2, 2}, 4},
                                                       {{17, 2, 3, 4}, {1, 3}, 7},
                                                       {{2, 16, 4, 4}, {2, 2}, 32},
                                                       {{1, 2, 3, 3}, {4, 5}, 2},
                                                       {{2, 3, 2, 2}, {1, 1}, 3}}) {
    const Shape y{s.x[0], s.channels, (s.x[2] + s.stride.height - 1) / s.stride.height,
                  (s.x[3] + s.stride.width - 1) / s.stride.width};
    const int64_t before = (s.channels - s.x[1]) / 2;
    for (const Order order : test::image_orders()) {
      test::check_derivatives({
          .shapes = {s.x},
          .op = [&](const auto& in) { return subsample_pad(in[0], s.stride, s.channels); },
          .definition =
              [&](const auto& in) {
                ComplexArray all(static_cast<size_t>(y.numel()));
                for (int64_t i = 0; i < y.numel(); ++i) {
                  const int64_t column = i % y[3], row = i / y[3] % y[2];
                  const int64_t channel = i / (y[3] * y[2]) % y[1] - before,
                                n = i / (y.numel() / y[0]);
                  if (channel < 0 || channel >= s.x[1]) continue;
                  all[static_cast<size_t>(i)] = in[0][static_cast<size_t>(
                      ((n * s.x[1] + channel) * s.x[2] + row * s.stride.height) * s.x[3] +
                      column * s.stride.width)];
                }
                return all;
              },
          .tolerance = 1e-15,  // that of the complex step: elements are copied
          .order = order,
      });
    }
  }
}

TEST(SubsamplePadOp, KeepsImageSlabs) {
  const Tensor x = test::normal_tensor("x", {17, 2, 4, 4});
  EXPECT_EQ(subsample_pad(x.to(Order::ImageSlabs), {2, 2}, 4).value().order(), Order::ImageSlabs);
  EXPECT_EQ(subsample_pad(x, {2, 2}, 4).value().order(), Order::RowMajor);
}

// Gradients come in the order of whoever sends them, which need not be that of the output.
TEST(PoolingOps, TakeGradientsInAnyOrder) {
  const Tensor x = test::normal_tensor("x", {17, 16, 4, 4});
  const std::vector<std::function<Variable(const Variable&)>> ops = {
      [](const Variable& in) {
        return max_pool2d(in, {.kernel = {2, 2}, .stride = {2, 2}});
      },
      [](const Variable& in) {
        return avg_pool2d(in, {.kernel = {2, 2}, .stride = {2, 2}});
      },
      [](const Variable& in) {
        return subsample_pad(in, {2, 2}, 24);
      },
  };
  for (const auto& op : ops) {
    std::vector<float> expected;
    for (const Order order : test::image_orders()) {
      for (const Order order_of_gradient : test::image_orders()) {
        const Variable leaf = Variable::leaf(x.to(order));
        const Variable y = op(leaf);
        backward(y, test::normal_tensor("dy", y.shape()).to(order_of_gradient));
        if (expected.empty()) expected = leaf.gradient().to_vector();
        EXPECT_EQ(leaf.gradient().to_vector(), expected);
      }
    }
  }
}

TEST(PoolingOps, TakeAnEmptyBatch) {
  const Variable x = Variable::leaf(Tensor::zeros({0, 3, 4, 4}));
  for (const Variable& y : {max_pool2d(x, {.kernel = {2, 2}}), avg_pool2d(x, {.kernel = {2, 2}}),
                            global_average_pool(x), subsample_pad(x, {2, 2}, 4)}) {
    EXPECT_EQ(y.shape()[0], 0);
    backward(y, Tensor::zeros(y.shape()));
  }
}

TEST(PoolingOps, OfSequencesAreThoseOfImagesOfHeightOne) {
  const Window window{.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}};
  const std::vector<std::function<Variable(const Variable&)>> pools = {
      [&](const Variable& x) { return max_pool2d(x, window); },
      [&](const Variable& x) { return avg_pool2d(x, window, {.count_include_pad = false}); },
      [](const Variable& x) { return global_average_pool(x); }};
  const Tensor values = test::normal_tensor("x", {17, 3, 8});
  for (const auto& pool : pools) {
    const Variable sequences = Variable::leaf(values),
                   images = Variable::leaf(values.reshape({17, 3, 1, 8}));
    const Variable y = pool(sequences), expected = pool(images);
    EXPECT_EQ(y.value().to_vector(), expected.value().to_vector());
    EXPECT_EQ(y.shape(), y.shape().rank() == 2 ? (Shape{17, 3}) : (Shape{17, 3, 4}));
    const Tensor dy = test::normal_tensor("dy", y.shape());
    backward(y, dy);
    backward(expected, dy.reshape(expected.shape()));
    EXPECT_EQ(sequences.gradient().shape(), values.shape());
    EXPECT_EQ(sequences.gradient().to_vector(), images.gradient().to_vector());
  }
}

TEST(PoolingOps, ShapesThatDoNotFitAreNamed) {
  const Tensor x = Tensor::zeros({2, 3, 4, 4});
  EXPECT_THAT(
      [&] {
        max_pool2d(Tensor::zeros({2, 3}), {.kernel = {2, 2}});
      },
      ThrowsMessage<ShapeError>(
          "max_pool2d: needs [batch, channels, height, width] or [batch, channels, length], found "
          "[2, 3]"));
  EXPECT_THAT(
      [&] {
        avg_pool2d(Tensor::zeros({3, 4, 4}), {.kernel = {2, 2}});
      },
      ThrowsMessage<ShapeError>(
          "avg_pool2d: a kernel of 2x2 does not fit an image of 1x4 with padding 0x0"));
  EXPECT_THAT(
      [&] {
        global_average_pool(Tensor::zeros({2, 3}));
      },
      ThrowsMessage<ShapeError>("global_average_pool: needs [batch, channels, height, width] or "
                                "[batch, channels, length], "
                                "found [2, 3]"));
  EXPECT_THAT(
      [&] {
        max_pool2d(x, {.kernel = {5, 2}});
      },
      ThrowsMessage<ShapeError>(
          "max_pool2d: a kernel of 5x2 does not fit an image of 4x4 with padding 0x0"));
  EXPECT_THAT(
      [&] {
        avg_pool2d(x, {.kernel = {2, 2}, .padding = {2, 1}});
      },
      ThrowsMessage<ShapeError>("avg_pool2d: padding 2x1 is more than half of the kernel 2x2"));
  EXPECT_THAT(
      [&] {
        avg_pool2d(x, {.kernel = {0, 2}});
      },
      ThrowsMessage<ShapeError>(HasSubstr("avg_pool2d: kernel, stride and dilation must be")));
  EXPECT_THAT(
      [&] {
        subsample_pad(x, {2, 2}, 2);
      },
      ThrowsMessage<ShapeError>("subsample_pad: [2, 3, 4, 4] needs a stride of at least 1 and "
                                "at least as many channels as it has, found 2x2 and 2"));
  EXPECT_THAT(
      [&] {
        subsample_pad(x, {2, 0}, 4);
      },
      ThrowsMessage<ShapeError>(HasSubstr("found 2x0 and 4")));
  EXPECT_THAT(
      [&] {
        subsample_pad(Tensor::zeros({2, 3}), {2, 2}, 4);
      },
      ThrowsMessage<ShapeError>(
          "subsample_pad: needs [batch, channels, height, width], found [2, 3]"));
}

}  // namespace
}  // namespace lacuna::pooling_test
