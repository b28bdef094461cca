// Convolutions of sequences: values and gradients against the definition, in every layout.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops/image_definitions.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::convolution1d_test {
namespace {

using test::ComplexArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  std::string name;
  int64_t batch, in, out, length, kernel;
  Conv1dOptions options = {};

  Shape input() const { return {batch, in, length}; }
  Shape weight() const { return {out, in / options.groups, kernel}; }
  int64_t places() const {
    return LengthWindow{kernel, options.stride, options.padding, options.dilation}.output(length,
                                                                                          name);
  }
  Shape output() const { return {batch, out, places()}; }
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"plain", 2, 3, 4, 9, 3},
      {"padded", 2, 3, 4, 7, 5, {.padding = 2}},
      {"strided", 2, 2, 3, 10, 3, {.stride = 2, .padding = 1}},
      {"dilated", 2, 2, 3, 9, 3, {.padding = 2, .dilation = 3}},
      {"strided and dilated", 1, 2, 2, 12, 3, {.stride = 3, .padding = 2, .dilation = 2}},
      {"pointwise", 3, 5, 4, 4, 1},
      {"an even kernel", 2, 3, 2, 6, 4, {.padding = 1}},
      {"kernel as long as the sequence", 2, 3, 4, 5, 5},
      {"one place, padded", 2, 3, 4, 1, 3, {.padding = 1}},
      {"more padding than kernel", 1, 1, 2, 3, 2, {.padding = 3}},
      {"in groups", 2, 4, 6, 6, 3, {.padding = 1, .groups = 2}},
      {"depthwise", 2, 4, 4, 7, 3, {.stride = 2, .padding = 1, .groups = 4}},
      {"blocks of channels", 2, 16, 16, 5, 3, {.padding = 1}},
      {"two slabs", 17, 2, 3, 6, 3, {.padding = 1}},
  };
  return all;
}

const Case& named(const std::string& name) {
  for (const Case& c : cases()) {
    if (c.name == name) return c;
  }
  throw StateError("there is no case '" + name + "'");
}

// y[n, o, i] = b[o] + Σ_c Σ_t w[o, c, t] x[n, c, i · stride + t · dilation − padding], where c are
// the channels of o's group.
ComplexArray definition(const Case& c, const ComplexArray& x, const ComplexArray& w,
                        const ComplexArray& bias) {
  const Conv1dOptions& p = c.options;
  const int64_t places = c.places(), of_group = c.in / p.groups, rows = c.out / p.groups;
  ComplexArray y(static_cast<size_t>(c.output().numel()));
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t o = 0; o < c.out; ++o) {
      for (int64_t i = 0; i < places; ++i) {
        test::Complex sum = bias.empty() ? test::Complex(0.0) : bias[static_cast<size_t>(o)];
        for (int64_t g = 0; g < of_group; ++g) {
          const int64_t channel = o / rows * of_group + g;
          for (int64_t t = 0; t < c.kernel; ++t) {
            const int64_t at = i * p.stride + t * p.dilation - p.padding;
            if (at < 0 || at >= c.length) continue;
            sum += w[static_cast<size_t>((o * of_group + g) * c.kernel + t)] *
                   x[static_cast<size_t>((n * c.in + channel) * c.length + at)];
          }
        }
        y[static_cast<size_t>((n * c.out + o) * places + i)] = sum;
      }
    }
  }
  return y;
}

BitMask mask_of(const Shape& shape, double density) {
  BitMask mask = BitMask::zeros(shape.numel());
  const CounterRng rng(11, "mask");
  for (int64_t i = 0; i < shape.numel(); ++i) {
    if (rng.uniform(static_cast<uint64_t>(i)) < density) mask.set(i);
  }
  return mask;
}

ParameterPtr weight_of(const Shape& shape, const Layout& layout, double density) {
  auto weight = std::make_shared<Parameter>(shape, Initializer::constant(0.0));
  weight->set_name("conv.weight");
  weight->use = WeightUse::Convolution;
  weight->assign(test::normal_tensor("weight", shape, 0.5));
  if (&layout != &dense_layout()) {
    weight->set_pattern(Pattern::make(layout, shape, mask_of(shape, density)));
  }
  return weight;
}

std::vector<float> dense_gradient(const Parameter& weight) {
  return weight.pattern()
      ->layout()
      .to_dense(*weight.pattern(), weight.gradient().storage())
      .to_vector();
}

void check(const Case& c, const Layout& layout, double density, Order order, bool has_bias) {
  SCOPED_TRACE(c.name + ", " + std::string(layout.name()) + ", " + to_string(order));
  const ParameterPtr weight = weight_of(c.weight(), layout, density);
  const ComplexArray w = test::convert<test::Complex>(weight->to_dense().to_vector());
  // float32 products of up to 80 terms: their error grows with the root of the number.
  constexpr double kTolerance = 2e-6;
  std::vector<Shape> shapes{c.input()};
  if (has_bias) shapes.push_back({c.out});
  test::check_derivatives({
      .shapes = shapes,
      .op =
          [&](const auto& in) {
            const Variable y = conv1d(in[0], weight, has_bias ? in[1] : Variable(), c.options);
            EXPECT_EQ(y.shape(), c.output());
            return y;
          },
      .definition =
          [&](const auto& in) {
            return definition(c, in[0], w, has_bias ? in[1] : ComplexArray());
          },
      .tolerance = kTolerance,
      .order = order,
  });
  // The inputs and the output's gradient are those that check_derivatives draws.
  const ComplexArray x =
      test::convert<test::Complex>(test::normal_values("input0", c.input().numel()));
  const std::vector<double> dy =
      test::convert<double>(test::normal_values("dy", c.output().numel()));
  std::vector<double> expected =
      test::complex_step([&](const ComplexArray& at) { return definition(c, x, at, {}); }, w, dy);
  const BitMask mask = mask_of(c.weight(), &layout == &dense_layout() ? 2.0 : density);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!mask.test(static_cast<int64_t>(i))) expected[i] = 0.0;
  }
  test::expect_near(dense_gradient(*weight), expected, kTolerance, "gradient of the weight");
}

TEST(Conv1dOp, DerivativesAgreeWithTheDefinition) {
  for (const Case& c : cases()) {
    check(c, dense_layout(), 1.0, Order::RowMajor, true);
    check(c, masked_layout(), 0.7, Order::RowMajor, false);
    check(c, csr_layout(), 0.7, Order::RowMajor, true);
    check(c, csr_layout(), 0.2, Order::ImageSlabs, false);
  }
}

TEST(Conv1dOp, TakesSequencesInAnyOrder) {
  for (const char* name : {"padded", "blocks of channels", "two slabs", "in groups"}) {
    for (const Order order : test::image_orders()) {
      check(named(name), dense_layout(), 1.0, order, true);
      check(named(name), csr_layout(), 0.7, order, true);
      check(named(name), csr_layout(), -1.0, order, true);  // nothing is kept
    }
  }
}

// A central difference of the loss in each of a few values of weight and input.
TEST(Conv1dOp, GradientsAgreeWithFiniteDifferences) {
  const Case& c = named("strided");
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    const Tensor images = test::normal_tensor("x", c.input());
    const Tensor dy = test::normal_tensor("dy", c.output());
    const auto loss = [&](const Tensor& x, const ParameterPtr& weight) {
      const std::vector<float> y = conv1d(x, weight, {}, c.options).value().to_vector();
      double sum = 0.0;
      for (size_t i = 0; i < y.size(); ++i) {
        sum += static_cast<double>(y[i]) * static_cast<double>(dy.data()[i]);
      }
      return sum;
    };
    const ParameterPtr weight = weight_of(c.weight(), *layout, 0.8);
    const Variable x = Variable::leaf(images);
    backward(conv1d(x, weight, {}, c.options), dy);
    constexpr float kStep = 0.25f;  // the loss is linear in either: the step is no source of error
    const std::vector<float> dx = x.gradient().to_vector();
    for (int64_t i = 0; i < images.numel(); i += 3) {
      const auto at = [&](float step) {
        Tensor moved = images.clone();
        moved.mutable_data()[i] += step;
        return loss(moved, weight);
      };
      EXPECT_NEAR(dx[static_cast<size_t>(i)], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-4) << i;
    }
    const std::vector<float> gradient = weight->gradient().to_vector();
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (weight->values().data()[i] == 0.0f) continue;  // masked
      const auto at = [&](float step) {
        const ParameterPtr moved = weight_of(c.weight(), *layout, 0.8);
        moved->mutable_values().mutable_data()[i] += step;
        return loss(images, moved);
      };
      EXPECT_NEAR(gradient[i], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-4) << i;
    }
  }
}

TEST(Conv1dOp, StaysInTheOrderOfItsProducts) {
  const Case& c = named("blocks of channels");
  const Tensor x = test::normal_tensor("x", c.input());
  const auto order = [&](const Layout& layout) {
    const Variable y = conv1d(x, weight_of(c.weight(), layout, 0.5), {}, c.options);
    const Variable normed = relu(batch_norm(y, {}, {}, channel_moments(y), MomentsOf::Batch));
    EXPECT_EQ(normed.value().order(), y.value().order());
    return y.value().order();
  };
  const ConvolutionShape shape{
      .batch = 2, .in_channels = 16, .out_channels = 16, .image = {1, 5}, .window = {}};
  EXPECT_EQ(order(csr_layout()), Order::ImageSlabs);
  EXPECT_EQ(order(masked_layout()), dense_layout().convolutions(shape).order(shape));
}

TEST(Conv1dOp, GivesTheSameBitsForAnyNumberOfThreads) {
  const Case c{"large", 35, 33, 40, 50, 5, {.padding = 2}};
  const int before = num_threads();
  const auto run = [&](const Layout& layout) {
    const ParameterPtr weight = weight_of(c.weight(), layout, 0.3);
    const Variable x = Variable::leaf(test::normal_tensor("x", c.input()));
    const Variable y = conv1d(x, weight, {}, c.options);
    backward(y, test::normal_tensor("dy", c.output()));
    return std::vector{y.value().to_vector(), x.gradient().to_vector(), dense_gradient(*weight)};
  };
  for (const Layout* layout : {&masked_layout(), &csr_layout()}) {
    set_num_threads(1);
    const auto one = run(*layout);
    set_num_threads(2);
    EXPECT_EQ(run(*layout), one) << layout->name();
  }
  set_num_threads(before);
}

TEST(Conv1dOp, OfAFrozenWeightPassesTheGradientOn) {
  const Case& c = named("padded");
  const ParameterPtr weight = weight_of(c.weight(), csr_layout(), 0.5);
  weight->trainable = false;
  const Tensor sequences = test::normal_tensor("x", c.input());
  EXPECT_FALSE(conv1d(sequences, weight, {}, c.options).requires_grad());
  const Variable x = Variable::leaf(sequences);
  backward(conv1d(x, weight, {}, c.options), test::normal_tensor("dy", c.output()));
  EXPECT_EQ(x.gradient().shape(), c.input());
  EXPECT_FALSE(weight->has_gradient());
}

TEST(Conv1dOp, TakesAnEmptyBatch) {
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout()}) {
    const ParameterPtr weight = weight_of({16, 16, 3}, *layout, 0.5);
    const Variable y = conv1d(Tensor::zeros({0, 16, 5}), weight);
    EXPECT_EQ(y.shape(), (Shape{0, 16, 3}));
    backward(y, Tensor::zeros(y.shape()));
    EXPECT_EQ(dense_gradient(*weight), std::vector<float>(16 * 16 * 3, 0.0f));
  }
}

TEST(Conv1dOp, ShapesThatDoNotFitAreNamed) {
  const auto weight = std::make_shared<Parameter>(Shape{4, 3, 5}, Initializer::constant(0.0));
  weight->set_name("stem.weight");
  const auto refuses = [&](const Shape& x, const Conv1dOptions& options, const std::string& words) {
    EXPECT_THAT([&] { conv1d(Tensor::zeros(x), weight, {}, options); },
                ThrowsMessage<ShapeError>(HasSubstr(words)));
  };
  refuses({2, 5, 8}, {},
          "conv1d 'stem.weight': a weight of shape [4, 3, 5] needs sequences [batch, 3, length], "
          "found [2, 5, 8]");
  refuses({2, 3, 1, 8}, {}, "needs sequences [batch, 3, length], found [2, 3, 1, 8]");
  refuses({2, 3}, {}, "found [2, 3]");
  refuses({2, 3, 8}, {.groups = 2}, "in 2 groups needs sequences [batch, 6, length], found");
  refuses({2, 3, 8}, {.groups = 0}, "in 0 groups");
  refuses({2, 3, 4}, {},
          "conv1d 'stem.weight': a kernel of 5 does not fit a length of 4 with padding 0");
  refuses({2, 3, 6}, {.padding = 1, .dilation = 2},
          "a kernel of 5 with dilation 2 does not fit a length of 6 with padding 1");
  refuses({2, 3, 8}, {.stride = 0},
          "kernel, stride and dilation must be at least 1 and padding at least 0, found kernel 5, "
          "stride 0, padding 0, dilation 1");
  EXPECT_THAT(
      [&] {
        conv1d(Tensor::zeros({2, 3, 8}), weight, Tensor::zeros({3}));
      },
      ThrowsMessage<ShapeError>("conv1d 'stem.weight': a weight of shape [4, 3, 5] needs a "
                                "bias [4], found [3]"));
  const auto images = std::make_shared<Parameter>(Shape{4, 3, 1, 5}, Initializer::constant(0.0));
  images->set_name("images.weight");
  EXPECT_THAT(
      [&] {
        conv1d(Tensor::zeros({2, 3, 8}), images);
      },
      ThrowsMessage<ShapeError>(HasSubstr("a weight of shape [4, 3, 1, 5] needs")));
}

}  // namespace
}  // namespace lacuna::convolution1d_test
