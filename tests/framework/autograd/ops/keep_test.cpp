#include "lacuna/framework/autograd/ops/keep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"

namespace lacuna::keep_test {
namespace {

TEST(Keep, PassesValuesAndGradientsAtTheSameElements) {
  Variable x = Variable::leaf(Tensor::from(Shape{2, 2}, std::vector{1.0f, -3.0f, 2.0f, 0.5f}));
  const KeepFunction large = [](const Tensor& t) {
    BitMask mask = BitMask::zeros(t.numel());
    for (int64_t i = 0; i < t.numel(); ++i) {
      if (std::abs(t.data()[i]) > 1.5f) mask.set(i);
    }
    return mask;
  };
  const Variable y = keep(x, large);
  EXPECT_EQ(y.value().to_vector(), (std::vector{0.0f, -3.0f, 2.0f, 0.0f}));
  backward(sum(y));
  EXPECT_EQ(x.gradient().to_vector(), (std::vector{0.0f, 1.0f, 1.0f, 0.0f}));
  x.zero_gradient();
  backward(sum(keep_gradient(x, large)));  // a gradient of ones: none is large
  EXPECT_EQ(x.gradient().to_vector(), std::vector<float>(4));
}

}  // namespace
}  // namespace lacuna::keep_test
