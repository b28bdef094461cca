// Dense convolutions of few inputs that compute image slabs for those that read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna::convolution_slabs_test {
namespace {

struct Case {
  std::string name;
  int64_t batch = 0, in = 0, out = 0;
  Extent image;
  Window window;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"3 x 3 of images in colours", 32, 3, 16, {6, 7}, {.kernel = {3, 3}, .padding = {1, 1}}},
      {"half a slab too many", 24, 3, 5, {5, 4}, {.kernel = {3, 3}, .padding = {1, 1}}},
      {"strided", 17, 2, 3, {7, 6}, {{3, 3}, {2, 2}, {1, 1}}},
      {"uneven", 16, 1, 4, {7, 8}, {{2, 3}, {3, 2}, {0, 2}}},
      {"dilated", 16, 4, 4, {9, 8}, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}},
      {"5 x 5 of grey images", 16, 1, 6, {8, 8}, {.kernel = {5, 5}}},
  };
  return all;
}

ParameterPtr weight_of(const Case& c, const Layout& layout) {
  const Shape shape{c.out, c.in, c.window.kernel.height, c.window.kernel.width};
  auto weight = std::make_shared<Parameter>(shape, Initializer::constant(0.0));
  weight->set_name("conv.weight");
  weight->use = WeightUse::Convolution;
  weight->assign(test::normal_tensor("weight", shape, 0.5));
  if (&layout != &dense_layout()) {
    BitMask mask = BitMask::zeros(shape.numel());
    for (int64_t i = 0; i < shape.numel(); i += 1 + i % 3) mask.set(i);
    weight->set_pattern(Pattern::make(layout, shape, mask));
  }
  return weight;
}

struct Results {
  Order order = Order::RowMajor;
  std::vector<std::pair<std::string, std::vector<float>>> values;
};

Results results(const Case& c, const Layout& layout, bool is_read_in_slabs) {
  const ParameterPtr weight = weight_of(c, layout);
  const Variable x =
      Variable::leaf(test::normal_tensor("x", Shape{c.batch, c.in, c.image.height, c.image.width}));
  const Variable bias = Variable::leaf(test::normal_tensor("bias", Shape{c.out}));
  const Variable y = conv2d(x, weight, bias,
                            {.stride = c.window.stride,
                             .padding = c.window.padding,
                             .dilation = c.window.dilation,
                             .is_read_in_slabs = is_read_in_slabs});
  backward(sum(y * Variable(test::normal_tensor("dy", y.shape()))));
  return {.order = y.value().order(),
          .values = {{"y", y.value().to_vector()},
                     {"dx", x.gradient().to_vector()},
                     {"dw", weight->gradient().to_vector()},
                     {"db", bias.gradient().to_vector()}}};
}

TEST(ConvolutionSlabs, AreWhatTheDenseProductsCompute) {
  for (const Case& c : cases()) {
    for (const Layout* layout : {&dense_layout(), &masked_layout()}) {
      SCOPED_TRACE(c.name + ", " + std::string(layout->name()));
      const Results expected = results(c, *layout, false), found = results(c, *layout, true);
      EXPECT_NE(expected.order, Order::ImageSlabs);
      EXPECT_EQ(found.order, Order::ImageSlabs);
      for (size_t i = 0; i < expected.values.size(); ++i) {
        const auto& [name, values] = expected.values[i];
        ASSERT_EQ(found.values[i].second.size(), values.size()) << name;
        float largest = 1.0f;
        for (const float value : values) largest = std::max(largest, std::abs(value));
        for (size_t k = 0; k < values.size(); ++k) {
          ASSERT_NEAR(found.values[i].second[k], values[k], 1e-5f * largest) << name << " " << k;
        }
      }
    }
  }
}

TEST(ConvolutionSlabs, AreNotComputedOfManyInputsOrFewExamples) {
  Case c = cases().front();
  c.in = 5;  // 45 products for each value
  EXPECT_NE(results(c, dense_layout(), true).order, Order::ImageSlabs);
  c = cases().front();
  c.batch = 15;  // less than a slab
  EXPECT_NE(results(c, dense_layout(), true).order, Order::ImageSlabs);
}

}  // namespace
}  // namespace lacuna::convolution_slabs_test
