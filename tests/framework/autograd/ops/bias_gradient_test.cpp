// The gradient of a linear layer's bias, which some layouts' weight gradients make on the way.
#include <gtest/gtest.h>

#include "framework/autograd/derivatives.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna::bias_gradient_test {
namespace {

// Positions that every pattern here allows: whole blocks of 16 × 16, of which 2 of 4 columns are
// kept where `thins`; the last rows have none.
BitMask mask_of(const Shape& shape, bool thins) {
  BitMask mask = BitMask::zeros(shape.numel());
  const CounterRng rng(3, "mask");
  for (int64_t r = 0; r < shape[0] - 16; ++r) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      const bool has_block = rng.uniform(static_cast<uint64_t>(r / 16 * 64 + c / 16)) < 0.6;
      if (has_block && (!thins || c % 4 < 2)) mask.set(r * shape[1] + c);
    }
  }
  return mask;
}

struct Layer {
  Layer(const Layout& layout, bool thins)
      : weight(std::make_shared<Parameter>(Shape{80, 48}, Initializer::normal(0.1))) {
    weight->use = WeightUse::Linear;
    if (&layout == &dense_layout()) return;
    const BitMask mask = mask_of(weight->shape(), thins);
    weight->set_pattern(
        &layout == &masked_layout()
            ? Pattern::masked(weight->shape(), mask)
            : Pattern::make(layout, weight->shape(), Positions::of(weight->shape(), mask)));
  }

  std::vector<float> bias_gradient(int64_t batch) const {
    const Variable bias = Variable::leaf(test::normal_tensor("bias", {80}));
    const Variable x = Variable::leaf(test::normal_tensor("x", {batch, 48}));
    const Variable y = linear(x, weight, bias);
    backward(y, test::normal_tensor("dy", {batch, 80}));
    return bias.gradient().to_vector();
  }

  ParameterPtr weight;
};

void expect_sums_of_dy(const Layout& layout, bool thins) {
  const Layer layer(layout, thins);
  for (const int64_t batch : {1, 2, 5, 63, 64, 65, 130, 300}) {
    SCOPED_TRACE(testing::Message() << layout.name() << ", batch " << batch);
    const std::vector<float> dy = test::normal_tensor("dy", {batch, 80}).to_vector();
    std::vector<double> expected(80);
    for (size_t i = 0; i < dy.size(); ++i) expected[i % 80] += double{dy[i]};
    const std::vector<float> found = layer.bias_gradient(batch);
    EXPECT_LE(test::largest_error(found, expected), 1e-5);
    for (const int threads : {1, 2, 5}) {
      const int before = num_threads();
      set_num_threads(threads);
      EXPECT_EQ(layer.bias_gradient(batch), found) << threads << " threads";
      set_num_threads(before);
    }
  }
}

TEST(BiasGradient, IsTheSumOverTheBatchInEveryLayout) {
  for (const Layout* layout :
       {&dense_layout(), &masked_layout(), &csr_layout(), &layout_for(PatternShape::block(4, 4)),
        &layout_for(PatternShape::block(16, 16)), &layout_for(PatternShape::block(8, 1)),
        &layout_for(PatternShape::block(1, 8))}) {
    expect_sums_of_dy(*layout, false);
  }
  expect_sums_of_dy(layout_for(PatternShape::nm(2, 4)), true);
  expect_sums_of_dy(layout_for(PatternShape::nm(4, 8)), true);
}

TEST(BiasGradient, OfASparseConvolutionIsTheSumOverBatchAndPixels) {
  const Shape shape{5, 3, 3, 3};
  const auto weight = std::make_shared<Parameter>(shape, Initializer::normal(0.1));
  weight->use = WeightUse::Convolution;
  BitMask mask = BitMask::zeros(shape.numel());
  for (int64_t i = 0; i < 4 * 27; i += 3) mask.set(i);  // the last channel has none
  weight->set_pattern(Pattern::make(csr_layout(), shape, Positions::of(shape, mask)));
  for (const int64_t batch : {1, 16, 35}) {
    const Variable bias = Variable::leaf(test::normal_tensor("bias", {5}));
    const Variable x = Variable::leaf(test::normal_tensor("x", {batch, 3, 7, 6}));
    const Tensor dy = test::normal_tensor("dy", {batch, 5, 7, 6});
    backward(conv2d(x, weight, bias, {.padding = {1, 1}}), dy);
    std::vector<double> expected(5);
    const std::vector<float> slopes = dy.to_vector();
    for (size_t i = 0; i < slopes.size(); ++i) expected[i / 42 % 5] += double{slopes[i]};
    EXPECT_LE(test::largest_error(bias.gradient().to_vector(), expected), 1e-5) << batch;
  }
}

}  // namespace
}  // namespace lacuna::bias_gradient_test
