#include "lacuna/framework/autograd/ops/convolution.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/autograd/ops/pooling.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna::convolution_test {
namespace {

using test::ComplexArray;
using testing::ThrowsMessage;

struct Case {
  std::string name;
  ConvolutionShape shape;
};

ConvolutionShape convolution(int64_t batch, int64_t in, int64_t out, int64_t groups, Extent image,
                             const Window& window) {
  ConvolutionShape shape;
  shape.batch = batch;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.groups = groups;
  shape.image = image;
  shape.window = window;
  return shape;
}

Conv2dOptions options_of(const ConvolutionShape& shape) {
  return {.stride = shape.window.stride,
          .padding = shape.window.padding,
          .dilation = shape.window.dilation,
          .groups = shape.groups};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"plain", convolution(2, 3, 4, 1, {4, 5}, {.kernel = {3, 3}})},
      {"padded", convolution(2, 3, 4, 1, {4, 5}, {.kernel = {3, 3}, .padding = {1, 1}})},
      {"strided",
       convolution(2, 2, 3, 1, {7, 6}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})},
      {"uneven",
       convolution(2, 2, 3, 1, {7, 8}, {.kernel = {2, 3}, .stride = {3, 2}, .padding = {0, 2}})},
      {"dilated",
       convolution(2, 2, 3, 1, {7, 6}, {.kernel = {3, 2}, .padding = {2, 1}, .dilation = {2, 3}})},
      {"strided and dilated", convolution(1, 2, 2, 1, {9, 8}, {{3, 3}, {2, 2}, {2, 2}, {2, 2}})},
      {"pointwise", convolution(3, 5, 4, 1, {2, 3}, {.kernel = {1, 1}})},
      {"pointwise, strided", convolution(2, 3, 4, 1, {5, 4}, {.kernel = {1, 1}, .stride = {2, 2}})},
      {"kernel as large as the image", convolution(2, 3, 4, 1, {3, 3}, {.kernel = {3, 3}})},
      {"one pixel, padded", convolution(2, 3, 4, 1, {1, 1}, {.kernel = {3, 3}, .padding = {1, 1}})},
      {"more padding than kernel",
       convolution(1, 1, 2, 1, {2, 2}, {.kernel = {2, 2}, .padding = {3, 3}})},
      {"in groups", convolution(2, 4, 6, 2, {4, 3}, {.kernel = {3, 3}, .padding = {1, 1}})},
      {"depthwise",
       convolution(2, 4, 4, 4, {5, 4}, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})},
      {"blocks of channels",
       convolution(2, 16, 16, 1, {2, 2}, {.kernel = {2, 2}, .padding = {1, 0}})},
      {"blocks to channels",
       convolution(1, 16, 3, 1, {2, 3}, {.kernel = {3, 3}, .padding = {1, 1}})},
      {"channels to blocks",
       convolution(1, 3, 16, 1, {3, 3}, {.kernel = {3, 3}, .stride = {2, 2}})},
      {"two slabs", convolution(17, 2, 3, 1, {3, 4}, {.kernel = {3, 3}, .padding = {1, 1}})},
  };
  return all;
}

const Case& named(const std::string& name) {
  for (const Case& c : cases()) {
    if (c.name == name) return c;
  }
  throw StateError("there is no case '" + name + "'");
}

enum class Kept { All, Most, Few, None };

BitMask mask_of(const Shape& shape, Kept kept) {
  BitMask mask = BitMask::zeros(shape.numel());
  const CounterRng rng(11, "mask");
  const double density = kept == Kept::All ? 1.0 : kept == Kept::Most ? 0.7 : 0.2;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    if (kept != Kept::None && rng.uniform(static_cast<uint64_t>(i)) < density) mask.set(i);
  }
  return mask;
}

ParameterPtr weight_of(const ConvolutionShape& shape, const Layout& layout, Kept kept) {
  const Shape sizes = shape.weight_shape();
  auto weight = std::make_shared<Parameter>(sizes, Initializer::constant(0.0));
  weight->set_name("conv.weight");
  weight->use = WeightUse::Convolution;
  weight->assign(test::normal_tensor("weight", sizes, 0.5));
  if (&layout != &dense_layout()) {
    weight->set_pattern(Pattern::make(layout, sizes, mask_of(sizes, kept)));
  }
  return weight;
}

std::vector<float> dense_gradient(const Parameter& weight) {
  return weight.pattern()
      ->layout()
      .to_dense(*weight.pattern(), weight.gradient().storage())
      .to_vector();
}

void check(const Case& c, const Layout& layout, Kept kept, Order order, bool has_bias) {
  SCOPED_TRACE(c.name + ", " + std::string(layout.name()) + ", " + to_string(order));
  const ParameterPtr weight = weight_of(c.shape, layout, kept);
  const ComplexArray w = test::convert<test::Complex>(weight->to_dense().to_vector());
  // float32 products of up to 160 terms: their error grows with the root of the number.
  constexpr double kTolerance = 2e-6;
  std::vector<Shape> shapes{c.shape.input_shape()};
  if (has_bias) shapes.push_back({c.shape.out_channels});
  test::check_derivatives({
      .shapes = shapes,
      .op =
          [&](const auto& in) {
            return conv2d(in[0], weight, has_bias ? in[1] : Variable(), options_of(c.shape));
          },
      .definition =
          [&](const auto& in) {
            return test::conv2d_definition(c.shape, in[0], w, has_bias ? in[1] : ComplexArray());
          },
      .tolerance = kTolerance,
      .order = order,
  });
  // The inputs and the output's gradient are those that check_derivatives draws.
  const ComplexArray x =
      test::convert<test::Complex>(test::normal_values("input0", c.shape.input_shape().numel()));
  const std::vector<double> dy =
      test::convert<double>(test::normal_values("dy", c.shape.output_shape().numel()));
  std::vector<double> expected = test::complex_step(
      [&](const ComplexArray& at) { return test::conv2d_definition(c.shape, x, at, {}); }, w, dy);
  const BitMask mask =
      mask_of(c.shape.weight_shape(), &layout == &dense_layout() ? Kept::All : kept);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!mask.test(static_cast<int64_t>(i))) expected[i] = 0.0;
  }
  test::expect_near(dense_gradient(*weight), expected, kTolerance, "gradient of the weight");
}

TEST(Conv2dOp, DerivativesAgreeWithTheDefinition) {
  for (const Case& c : cases()) {
    check(c, dense_layout(), Kept::All, Order::RowMajor, true);
    check(c, dense_layout(), Kept::All, Order::ImageSlabs, true);
    check(c, masked_layout(), Kept::Most, Order::RowMajor, false);
    check(c, csr_layout(), Kept::Most, Order::RowMajor, true);
    check(c, csr_layout(), Kept::Few, Order::ImageSlabs, false);
  }
}

TEST(Conv2dOp, TakesImagesInAnyOrder) {
  for (const char* name : {"padded", "blocks of channels", "two slabs"}) {
    const Case& c = named(name);
    for (const Order order : test::image_orders()) {
      check(c, dense_layout(), Kept::All, order, true);
      check(c, csr_layout(), Kept::Most, order, true);
    }
  }
}

TEST(Conv2dOp, WithNothingKeptIsTheBias) {
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    check(named("padded"), *layout, Kept::None, Order::RowMajor, true);
    check(named("padded"), *layout, Kept::None, Order::ImageSlabs, false);
  }
}

TEST(Conv2dOp, WithAllKeptIsDense) {
  check(named("strided"), csr_layout(), Kept::All, Order::RowMajor, true);
  check(named("strided"), masked_layout(), Kept::All, Order::RowMajor, true);
}

TEST(Conv2dOp, GivesImagesInTheOrderOfItsProducts) {
  const ConvolutionShape& blocks = named("blocks of channels").shape;
  const Tensor x = test::normal_tensor("x", blocks.input_shape());
  const auto order = [&](const Layout& layout, const ConvolutionShape& shape) {
    const Tensor images = test::normal_tensor("x", shape.input_shape());
    return conv2d(images, weight_of(shape, layout, Kept::Few), {}, options_of(shape))
        .value()
        .order();
  };
  EXPECT_EQ(order(csr_layout(), blocks), Order::ImageSlabs);
  EXPECT_EQ(order(dense_layout(), blocks), dense_layout().convolutions(blocks).order(blocks));
  EXPECT_EQ(order(masked_layout(), blocks), dense_layout().convolutions(blocks).order(blocks));
  EXPECT_EQ(order(dense_layout(), named("plain").shape), Order::RowMajor);
  // Single pixels of sparse convolutions' images stay theirs.
  ConvolutionShape pixels = blocks;
  pixels.window = {{1, 1}, {2, 2}};
  const Variable y = conv2d(x.to(Order::ImageSlabs), weight_of(pixels, dense_layout(), Kept::All),
                            {}, options_of(pixels));
  EXPECT_EQ(y.value().order() == Order::ImageSlabs, !use_reference_kernels());
  // Grouped convolutions run dense.
  EXPECT_NE(order(csr_layout(), named("in groups").shape), Order::ImageSlabs);
}

TEST(Conv2dOp, AddsUpTheGradientsOfTwoUses) {
  const ConvolutionShape shape =
      convolution(3, 2, 2, 1, {3, 3}, {.kernel = {3, 3}, .padding = {1, 1}});
  const Variable x = Variable::leaf(test::normal_tensor("x", shape.input_shape()));
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    const ParameterPtr twice = weight_of(shape, *layout, Kept::Most);
    const ParameterPtr first = weight_of(shape, *layout, Kept::Most);
    const ParameterPtr second = weight_of(shape, *layout, Kept::Most);
    const auto run = [&](const ParameterPtr& a, const ParameterPtr& b) {
      const Variable y = conv2d(conv2d(x, a, {}, options_of(shape)), b, {}, options_of(shape));
      backward(y, test::normal_tensor("dy", shape.output_shape()));
    };
    run(twice, twice);
    run(first, second);
    std::vector<float> expected = dense_gradient(*first);
    const std::vector<float> other = dense_gradient(*second);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
    // Two sums of floats, added in another order.
    EXPECT_LE(test::largest_error(dense_gradient(*twice), expected), 2e-6) << layout->name();
  }
}

TEST(Conv2dOp, OfAFrozenWeightPassesTheGradientOn) {
  const ConvolutionShape& shape = named("padded").shape;
  for (const Layout* layout : {&dense_layout(), &csr_layout()}) {
    const ParameterPtr weight = weight_of(shape, *layout, Kept::Most);
    weight->trainable = false;
    const Tensor images = test::normal_tensor("x", shape.input_shape());
    EXPECT_FALSE(conv2d(images, weight, {}, options_of(shape)).requires_grad());
    const Variable x = Variable::leaf(images);
    backward(conv2d(x, weight, {}, options_of(shape)),
             test::normal_tensor("dy", shape.output_shape()));
    EXPECT_TRUE(x.gradient().defined());
    EXPECT_FALSE(weight->has_gradient());
  }
}

// A network as they are: the batch's last slab is not full, and a norm shifts what is missing
// there.
struct Network {
  explicit Network(const Layout& layout) {
    const auto conv = [&](int64_t in, int64_t out, int64_t stride) {
      const ConvolutionShape s{
          19, in,     out,
          1,  {6, 5}, {.kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}}};
      shapes.push_back(s);
      weights.push_back(weight_of(s, layout, Kept::Most));
      scales.push_back(Variable::leaf(test::normal_tensor("scale", {out})));
      shifts.push_back(Variable::leaf(Tensor::full({out}, 0.5f)));
    };
    conv(3, 8, 1);
    conv(8, 8, 1);
    conv(8, 16, 2);
  }

  Variable norm_of(size_t i, const Variable& x) {
    const Variable y = conv2d(x, weights[i], {}, options_of(shapes[i]));
    return batch_norm(y, scales[i], shifts[i], channel_moments(y), MomentsOf::Batch);
  }
  Variable operator()(const Variable& x) {
    const Variable a = relu(norm_of(0, x));
    const Variable b = relu(add(norm_of(1, a), a));
    const Variable c = relu(add(norm_of(2, b), subsample_pad(b, {2, 2}, 16)));
    return global_average_pool(c);
  }

  std::vector<ConvolutionShape> shapes;
  std::vector<ParameterPtr> weights;
  std::vector<Variable> scales, shifts;
};

std::vector<std::vector<float>> run(const Layout& layout) {
  Network network(layout);
  const Variable x = Variable::leaf(test::normal_tensor("x", {19, 3, 6, 5}));
  const Variable y = network(x);
  backward(y, test::normal_tensor("dy", y.shape()));
  std::vector<std::vector<float>> results{y.value().to_vector(), x.gradient().to_vector()};
  for (size_t i = 0; i < 3; ++i) {
    results.push_back(dense_gradient(*network.weights[i]));
    results.push_back(network.scales[i].gradient().to_vector());
    results.push_back(network.shifts[i].gradient().to_vector());
  }
  return results;
}

TEST(Conv2dOp, InANetworkIsTheSameInImageSlabs) {
  const auto slabs = run(csr_layout()), images = run(masked_layout());
  for (size_t i = 0; i < slabs.size(); ++i) {
    // Three layers of sums of 72 floats, normalized, in another order.
    EXPECT_LE(test::largest_error(slabs[i], images[i]), 2e-5) << i;
  }
}

TEST(Conv2dOp, InANetworkGivesTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    set_num_threads(1);
    const auto one = run(*layout);
    set_num_threads(2);
    EXPECT_EQ(run(*layout), one) << layout->name();
  }
  set_num_threads(before);
}

TEST(Conv2dOp, TakesAnEmptyBatch) {
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    for (const int64_t channels : {3, 16}) {
      const ConvolutionShape shape =
          convolution(0, channels, channels, 1, {3, 3}, {.kernel = {3, 3}, .padding = {1, 1}});
      const ParameterPtr weight = weight_of(shape, *layout, Kept::Most);
      const Variable y = conv2d(Tensor::zeros(shape.input_shape()), weight, {}, options_of(shape));
      EXPECT_EQ(y.shape(), shape.output_shape());
      backward(y, Tensor::zeros(y.shape()));
      EXPECT_EQ(dense_gradient(*weight),
                std::vector<float>(static_cast<size_t>(weight->numel()), 0.0f));
    }
  }
}

TEST(Conv2dOp, ShapesThatDoNotFitAreNamed) {
  const auto weight = std::make_shared<Parameter>(Shape{4, 3, 3, 3}, Initializer::constant(0.0));
  weight->set_name("stem.weight");
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 5, 8, 8}), weight);
      },
      ThrowsMessage<ShapeError>("conv2d 'stem.weight': a weight of shape [4, 3, 3, 3] needs "
                                "images [batch, 3, height, width], found [2, 5, 8, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 8}), weight);
      },
      ThrowsMessage<ShapeError>(testing::HasSubstr("found [2, 3, 8]")));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 8, 8}), weight, {}, {.groups = 2});
      },
      ThrowsMessage<ShapeError>(
          "conv2d 'stem.weight': a weight of shape [4, 3, 3, 3] in 2 groups needs images "
          "[batch, 6, height, width], found [2, 3, 8, 8]"));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 9, 8, 8}), weight, {}, {.groups = 3});
      },
      ThrowsMessage<ShapeError>(testing::HasSubstr("[4, 3, 3, 3] in 3 groups")));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 8, 8}), weight, {}, {.groups = 0});
      },
      ThrowsMessage<ShapeError>(testing::HasSubstr("in 0 groups")));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 8, 8}), weight, Tensor::zeros({3}));
      },
      ThrowsMessage<ShapeError>("conv2d 'stem.weight': a weight of shape [4, 3, 3, 3] needs "
                                "a bias [4], found [3]"));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 2, 8}), weight);
      },
      ThrowsMessage<ShapeError>("conv2d 'stem.weight': a kernel of 3x3 does not fit an "
                                "image of 2x8 with padding 0x0"));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 6, 6}), weight, {}, {.padding = {0, 1}, .dilation = {3, 2}});
      },
      ThrowsMessage<ShapeError>("conv2d 'stem.weight': a kernel of 3x3 with dilation 3x2 does not "
                                "fit an image of 6x6 with padding 0x1"));
  EXPECT_THAT(
      [&] {
        conv2d(Tensor::zeros({2, 3, 6, 6}), weight, {}, {.stride = {0, 1}});
      },
      ThrowsMessage<ShapeError>(testing::HasSubstr(
          "conv2d 'stem.weight': kernel, stride and dilation must be at least 1 and padding "
          "at least 0, found kernel 3x3, stride 0x1, padding 0x0, dilation 1x1")));
}

}  // namespace
}  // namespace lacuna::convolution_test
