// The products of convolutions: every layout computes the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/dense/convolution_sums.h"
#include "framework/kernels/test_values.h"
#include "framework/layouts/formats/convolution_weights.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/layouts/pattern.h"
#include "throws.h"

namespace lacuna::convolution_products_test {
namespace {

constexpr Order kOrders[] = {Order::RowMajor, Order::BatchSlabs, Order::ImageSlabs,
                             Order::ChannelBlocks};

std::vector<ConvolutionShape> convolutions() {
  const Window same{{3, 3}, {1, 1}, {1, 1}};
  return {{17, 3, 4, 1, {6, 5}, same},
          {1, 16, 16, 1, {5, 7}, same},
          {16, 16, 32, 1, {4, 4}, {{1, 1}}},
          {3, 4, 5, 1, {9, 8}, {{3, 3}, {2, 2}, {1, 1}}},
          {2, 3, 4, 1, {9, 10}, {{3, 2}, {2, 1}, {0, 1}, {2, 3}}},
          {33, 5, 3, 1, {1, 1}, same},
          {2, 3, 4, 1, {11, 10}, {{5, 5}, {1, 1}, {2, 2}}},
          {5, 6, 4, 2, {6, 6}, same},
          {3, 16, 16, 16, {5, 6}, {{3, 3}, {2, 2}, {1, 1}}}};
}

// One convolution's weight in a layout, and what it is convolved with.
struct Problem {
  Problem(const ConvolutionShape& s, const Layout& layout)
      : shape(s),
        pattern(&layout == &dense_layout()
                    ? Pattern::dense(s.weight_shape())
                    : Pattern::make(layout, s.weight_shape(), draw(s.weight_shape(), 0.4))),
        values(Tensor::empty(pattern->stored_shape())),
        x(test::normal_tensor("x", s.input_shape())),
        dy(test::normal_tensor("dy", s.output_shape())),
        bias(test::normal_tensor("bias", Shape{s.out_channels})) {
    const Tensor w = test::normal_tensor("weight", s.weight_shape());
    layout.from_dense(*pattern, w.storage(), values.mutable_storage());
    dense = layout.to_dense(*pattern, values.storage());
    sums = test::convolution_sums(s, x, dense, dy);
    for (int64_t i = 0; i < dense.numel() && !pattern->is_dense(); ++i) {
      if (!pattern->positions().contains(i)) sums.dw[static_cast<size_t>(i)] = 0.0;
    }
  }
  const Layout& layout() const { return pattern->layout(); }
  WeightView weight() const { return {.pattern = *pattern, .values = values.storage()}; }

  ConvolutionShape shape;
  PatternPtr pattern;
  Tensor values, x, dy, bias, dense;
  test::ConvolutionSums sums;
};

class ConvolutionProductsTest : public testing::TestWithParam<const char*> {
 protected:
  static const Layout& layout() {
    const std::string name = GetParam();
    if (name == "dense") return dense_layout();
    if (name == "masked") return masked_layout();
    return name == "csr" ? csr_layout() : list_layout();
  }
};

// A few hundred products of normal values are summed in float; relative to the largest sum.
constexpr double kRounding = 5e-6;

TEST_P(ConvolutionProductsTest, Convolve) {
  for (const ConvolutionShape& s : convolutions()) {
    SCOPED_TRACE(test::name_of(s));
    Problem p(s, layout());
    for (const Order order : kOrders) {
      const Tensor y = layout().convolutions(s).forward(p.weight(), s, p.x.to(order), Tensor());
      EXPECT_EQ(y.shape(), s.output_shape());
      EXPECT_LT(test::error_of_largest(y.to_vector(), p.sums.y), kRounding) << to_string(order);
    }
    test::add_bias(s, p.bias.to_vector(), p.sums.y);
    const Tensor y = layout().convolutions(s).forward(p.weight(), s, p.x, p.bias);
    EXPECT_LT(test::error_of_largest(y.to_vector(), p.sums.y), kRounding);
  }
}

TEST_P(ConvolutionProductsTest, InputGradient) {
  for (const ConvolutionShape& s : convolutions()) {
    SCOPED_TRACE(test::name_of(s));
    const Problem p(s, layout());
    for (const Order order : kOrders) {
      const Tensor dx = layout().convolutions(s).input_gradient(p.weight(), s, p.dy.to(order));
      EXPECT_EQ(dx.shape(), s.input_shape());
      EXPECT_LT(test::error_of_largest(dx.to_vector(), p.sums.dx), kRounding) << to_string(order);
    }
  }
}

TEST_P(ConvolutionProductsTest, WeightGradientIsZeroOutsideThePatternAndAccumulates) {
  for (const ConvolutionShape& s : convolutions()) {
    SCOPED_TRACE(test::name_of(s));
    const Problem p(s, layout());
    for (const Order order : kOrders) {
      std::vector<float> gradient(static_cast<size_t>(p.pattern->stored_size()), NAN);
      std::vector<double> expected = p.sums.dw;
      for (const Accumulate accumulate : {Accumulate::No, Accumulate::Yes}) {
        layout().convolutions(s).weight_gradient(*p.pattern, s, p.dy.to(order), p.x.to(order),
                                                 accumulate, gradient);
        EXPECT_LT(
            test::error_of_largest(layout().to_dense(*p.pattern, gradient).to_vector(), expected),
            kRounding)
            << to_string(order);
        for (double& value : expected) value *= 2.0;
      }
    }
  }
}

TEST_P(ConvolutionProductsTest, NoExamples) {
  const ConvolutionShape s{0, 3, 4, 1, {5, 5}, {{3, 3}}};
  const Problem p(s, layout());
  EXPECT_EQ(layout().convolutions(s).forward(p.weight(), s, p.x, p.bias).shape(),
            (Shape{0, 4, 3, 3}));
  EXPECT_EQ(layout().convolutions(s).input_gradient(p.weight(), s, p.dy).shape(),
            (Shape{0, 3, 5, 5}));
  std::vector<float> gradient(static_cast<size_t>(p.pattern->stored_size()), NAN);
  layout().convolutions(s).weight_gradient(*p.pattern, s, p.dy, p.x, Accumulate::No, gradient);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 0.0f));
}

TEST_P(ConvolutionProductsTest, NoNonzeros) {
  const ConvolutionShape s{3, 3, 4, 1, {5, 5}, {{3, 3}, {1, 1}, {1, 1}}};
  if (&layout() == &dense_layout()) return;
  const PatternPtr none = Pattern::make(layout(), s.weight_shape(), Positions(s.weight_shape()));
  const Tensor values = Tensor::zeros(none->stored_shape()),
               x = test::normal_tensor("x", s.input_shape());
  const Tensor bias = test::normal_tensor("bias", Shape{4}),
               dy = test::normal_tensor("dy", s.output_shape());
  const WeightView weight{.pattern = *none, .values = values.storage()};
  const std::vector<float> y = layout().convolutions(s).forward(weight, s, x, bias).to_vector();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], bias.data()[i / 25 % 4]);
  EXPECT_EQ(layout().convolutions(s).input_gradient(weight, s, dy).to_vector(),
            Tensor::zeros(s.input_shape()).to_vector());
  std::vector<float> gradient(static_cast<size_t>(none->stored_size()), NAN);
  layout().convolutions(s).weight_gradient(*none, s, dy, x, Accumulate::No, gradient);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 0.0f));
}

TEST_P(ConvolutionProductsTest, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const ConvolutionShape s{40, 8, 16, 1, {9, 8}, {{3, 3}, {1, 1}, {1, 1}}};
  const Problem p(s, layout());
  std::vector<std::vector<float>> results[2];
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    std::vector<float> gradient(static_cast<size_t>(p.pattern->stored_size()));
    layout().convolutions(s).weight_gradient(*p.pattern, s, p.dy, p.x, Accumulate::No, gradient);
    results[threads - 1] = {
        layout().convolutions(s).forward(p.weight(), s, p.x, p.bias).to_vector(),
        layout().convolutions(s).input_gradient(p.weight(), s, p.dy).to_vector(), gradient};
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ConvolutionProductsTest,
                         testing::Values("dense", "masked", "csr", "list"));

TEST(LayoutsOfConvolutions, NameTheOrderThatTheyRunIn) {
  const ConvolutionShape s{8, 16, 16, 1, {6, 6}, {{3, 3}}};
  EXPECT_EQ(csr_layout().convolutions(s).order(s), Order::ImageSlabs);
  EXPECT_EQ(masked_layout().convolutions(s).order(s), dense_layout().convolutions(s).order(s));
  EXPECT_EQ(list_layout().convolutions(s).order(s), dense_layout().convolutions(s).order(s));
  ConvolutionShape grouped = s;
  grouped.groups = 2;
  EXPECT_EQ(csr_layout().convolutions(grouped).order(grouped),
            dense_layout().convolutions(grouped).order(grouped));
  const Problem p(s, csr_layout());
  EXPECT_EQ(csr_layout().convolutions(s).forward(p.weight(), s, p.x, p.bias).order(),
            Order::ImageSlabs);
  EXPECT_EQ(csr_layout().convolutions(s).input_gradient(p.weight(), s, p.dy).order(),
            Order::ImageSlabs);
}

// To the bit what the dense product of the same weight gives.
TEST(CsrOfConvolutions, GroupedOnesRunDense) {
  for (const int64_t groups : {2, 16}) {
    const ConvolutionShape s{5, 16, 32, groups, {7, 6}, {{3, 3}, {1, 1}, {1, 1}}};
    const Problem p(s, csr_layout());
    const PatternPtr whole = Pattern::dense(s.weight_shape());
    const WeightView dense{.pattern = *whole, .values = p.dense.storage()};
    EXPECT_EQ(csr_layout().convolutions(s).forward(p.weight(), s, p.x, p.bias).to_vector(),
              dense_layout().convolutions(s).forward(dense, s, p.x, p.bias).to_vector());
    EXPECT_EQ(csr_layout().convolutions(s).input_gradient(p.weight(), s, p.dy).to_vector(),
              dense_layout().convolutions(s).input_gradient(dense, s, p.dy).to_vector());
    std::vector<float> gradient(p.values.storage().size()), of_dense(p.dense.storage().size()),
        expected(gradient.size());
    csr_layout().convolutions(s).weight_gradient(*p.pattern, s, p.dy, p.x, Accumulate::No,
                                                 gradient);
    dense_layout().convolutions(s).weight_gradient(*whole, s, p.dy, p.x, Accumulate::No, of_dense);
    csr_layout().from_dense(*p.pattern, of_dense, expected);
    EXPECT_EQ(gradient, expected);
  }
}

// Images of other sizes are gathered otherwise, of another batch alike.
TEST(CsrOfConvolutions, OnePatternTakesImagesOfAnySize) {
  const Window window{{3, 3}, {1, 1}, {1, 1}};
  const ConvolutionShape first{4, 3, 5, 1, {8, 8}, window};
  const Problem p(first, csr_layout());
  int64_t bytes = p.pattern->index_bytes();
  for (int round = 0; round < 2; ++round) {
    for (ConvolutionShape s : {first, ConvolutionShape{4, 3, 5, 1, {5, 9}, window},
                               ConvolutionShape{2, 3, 5, 1, {8, 8}, {{3, 3}, {2, 2}}}}) {
      for (const int64_t batch : {4, 19}) {
        s.batch = batch;
        const Problem of_size(s, csr_layout());  // the same positions and values
        const Tensor y = csr_layout().convolutions(s).forward(p.weight(), s, of_size.x, Tensor());
        EXPECT_LT(test::error_of_largest(y.to_vector(), of_size.sums.y), kRounding);
        const bool is_new = round == 0 && batch == 4;
        EXPECT_EQ(p.pattern->index_bytes() > bytes, is_new) << test::name_of(s);
        bytes = p.pattern->index_bytes();
      }
    }
  }
}

// What kernels leave in examples that are none: a gradient would sum it up.
TEST(CsrOfConvolutions, ExamplesThatAreNoneCountForNothing) {
  const ConvolutionShape s{17, 3, 4, 1, {6, 5}, {{3, 3}, {1, 1}, {1, 1}}};
  const Problem p(s, csr_layout());
  const auto with_nans = [](const Tensor& images) {
    Tensor slabs = images.to(Order::ImageSlabs);
    const ImageSlabs at(slabs.shape());
    float* data = slabs.mutable_data(Order::ImageSlabs);
    for (int64_t channel = 0; channel < at.channels; ++channel) {
      for (int64_t pixel = 0; pixel < at.height * at.width; ++pixel) {
        float* line = data + at.line(1, channel, pixel / at.width, pixel % at.width);
        std::fill(line + 1, line + kImageSlabWidth, NAN);
      }
    }
    return slabs;
  };
  EXPECT_LT(
      test::error_of_largest(
          csr_layout().convolutions(s).forward(p.weight(), s, with_nans(p.x), Tensor()).to_vector(),
          p.sums.y),
      kRounding);
  EXPECT_LT(
      test::error_of_largest(
          csr_layout().convolutions(s).input_gradient(p.weight(), s, with_nans(p.dy)).to_vector(),
          p.sums.dx),
      kRounding);
  std::vector<float> gradient(p.values.storage().size());
  csr_layout().convolutions(s).weight_gradient(*p.pattern, s, with_nans(p.dy), with_nans(p.x),
                                               Accumulate::No, gradient);
  EXPECT_LT(
      test::error_of_largest(csr_layout().to_dense(*p.pattern, gradient).to_vector(), p.sums.dw),
      kRounding);
}

// A padded pixel is no example's: its channel's NaN stays with the outputs that see it.
TEST(CsrOfConvolutions, ANaNStaysWithItsExample) {
  const ConvolutionShape s{17, 1, 2, 1, {4, 4}, {{3, 3}, {1, 1}, {1, 1}}};
  const PatternPtr pattern =
      Pattern::make(csr_layout(), s.weight_shape(), Positions::all(s.weight_shape()));
  const Tensor values = Tensor::full(pattern->stored_shape(), 1.0f);
  Tensor x = Tensor::full(s.input_shape(), 1.0f);
  x.mutable_data()[16 * 16] = std::numeric_limits<float>::quiet_NaN();  // the last one's corner
  const std::vector<float> y =
      csr_layout()
          .convolutions(s)
          .forward({.pattern = *pattern, .values = values.storage()}, s, x, Tensor())
          .to_vector();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t example = i / 32, row = i / 4 % 4, column = i % 4;
    EXPECT_EQ(std::isnan(y[i]), example == 16 && row < 2 && column < 2) << i;
  }
}

TEST(MaskedConvolutions, NaNOutsideTheMaskDoesNotLeakIntoTheGradient) {
  const ConvolutionShape s{2, 2, 1, 1, {3, 3}, {{1, 1}}};
  const PatternPtr pattern = Pattern::make(
      masked_layout(), s.weight_shape(), Positions::of(s.weight_shape(), std::vector<int64_t>{0}));
  Tensor x = Tensor::full(s.input_shape(), 1.0f);
  for (const int64_t i : {9, 30}) x.mutable_data()[i] = NAN;  // of the second channel
  std::vector<float> gradient(2, 0.0f);
  masked_layout().convolutions(s).weight_gradient(*pattern, s, Tensor::full(s.output_shape(), 1.0f),
                                                  x, Accumulate::No, gradient);
  EXPECT_EQ(gradient, (std::vector<float>{18.0f, 0.0f}));
}

// Winograd rounds differently, and only where products are dense.
TEST(LayoutsOfConvolutions, TakeTheAlgorithmThatTheShapeNames) {
  const ConvolutionShape direct{8, 16, 16, 1, {12, 12}, {{3, 3}, {1, 1}, {1, 1}}};
  ConvolutionShape winograd = direct;
  winograd.algorithms = {ConvolutionAlgorithm::Winograd, ConvolutionAlgorithm::Winograd,
                         ConvolutionAlgorithm::Winograd};
  for (const Layout* layout : {&dense_layout(), &masked_layout(), &csr_layout(), &list_layout()}) {
    SCOPED_TRACE(layout->name());
    const Problem p(direct, *layout);
    std::vector<float> gradients[2];
    std::vector<std::vector<float>> results[2];
    for (const ConvolutionShape& s : {direct, winograd}) {
      const size_t i = s == direct ? 0 : 1;
      std::vector<float> gradient(static_cast<size_t>(p.pattern->stored_size()));
      layout->convolutions(s).weight_gradient(*p.pattern, s, p.dy, p.x, Accumulate::No, gradient);
      results[i] = {layout->convolutions(s).forward(p.weight(), s, p.x, p.bias).to_vector(),
                    layout->convolutions(s).input_gradient(p.weight(), s, p.dy).to_vector(),
                    gradient};
    }
    for (size_t k = 0; k < 3; ++k) {
      const std::vector<double> expected(results[0][k].begin(), results[0][k].end());
      EXPECT_LT(test::error_of_largest(results[1][k], expected), 1e-4);
      if (layout == &csr_layout()) {
        EXPECT_EQ(results[1][k], results[0][k]);
      }
    }
  }
}

TEST(CsrOfConvolutions, ALinearProductIsRefused) {
  const Shape shape{4, 3, 3, 3};
  const PatternPtr pattern = Pattern::make(csr_layout(), shape, draw(shape, 0.5));
  const Tensor values = Tensor::zeros(pattern->stored_shape());
  expect_throws<StateError>(
      [&] {
        csr_layout().forward({.pattern = *pattern, .values = values.storage()},
                             Tensor::zeros({2, 27}), Tensor());
      },
      "[4, 3, 3, 3] in layout 'csr' has a different type than requested");
}

}  // namespace
}  // namespace lacuna::convolution_products_test
