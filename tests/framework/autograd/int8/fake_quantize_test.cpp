#include "lacuna/framework/autograd/int8/fake_quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/parallel.h"
#include "random_values.h"

namespace lacuna::fake_quantize_test {
namespace {

// A grid on which some values of random_values (from −1 to 1) are clipped at both ends.
constexpr Int8Grid kGrid = {.scale = 0.006f, .zero = 110};

ParameterPtr scale_parameter() {
  auto parameter = std::make_shared<Parameter>(Shape{1}, Initializer::constant(1.0));
  parameter->set_name("scale");
  return parameter;
}

// The surrogate of a grid at (x, scale): rounding errors, in steps, are those at kGrid and stay.
double surrogate(double x, double scale, double at) {
  const double quotient = static_cast<double>(static_cast<float>(at) / kGrid.scale);
  const double step = std::nearbyint(quotient) + kGrid.zero;
  if (step < 0.0) return -kGrid.zero * scale;
  if (step > 255.0) return (255.0 - kGrid.zero) * scale;
  return scale * (x / scale + std::nearbyint(quotient) - quotient);
}

class LearnedGridTest : public testing::Test {
 protected:
  // Gradients of Σ c · y by x, and by the scale.
  std::pair<std::vector<float>, float> gradients(const Shape& shape, Order order) const {
    const Tensor x = random_tensor(shape, "x").to(order);
    const Variable input = Variable::leaf(x);
    const ParameterPtr parameter = scale_parameter();
    const Variable y = fake_quantize(
        input, LearnedGrid{.grid = kGrid, .parameter = parameter, .gradient_factor = 1.0});
    backward(y, random_tensor(shape, "c"));
    return {input.gradient().to_vector(), parameter->gradient().storage()[0]};
  }
};

TEST_F(LearnedGridTest, GradientsAreThoseOfTheSurrogate) {
  const Shape shape{37, 23};
  const std::vector<float> x = random_tensor(shape, "x").to_vector(),
                           c = random_tensor(shape, "c").to_vector();
  const auto [dx, dscale] = gradients(shape, Order::RowMajor);
  constexpr double kStep = 1e-7;
  const double scale = static_cast<double>(kGrid.scale);
  double expected = 0.0;
  int64_t clipped = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = static_cast<double>(x[i]), weight = static_cast<double>(c[i]);
    const auto f = [&](double moved, double s) { return weight * surrogate(moved, s, at); };
    ASSERT_NEAR(dx[i], (f(at + kStep, scale) - f(at - kStep, scale)) / (2.0 * kStep), 1e-5) << i;
    expected += (f(at, scale + kStep) - f(at, scale - kStep)) / (2.0 * kStep);
    clipped += dx[i] == 0.0f ? 1 : 0;
  }
  EXPECT_NEAR(dscale, expected, 1e-4 * std::abs(expected));
  EXPECT_GT(clipped, 20);
  EXPECT_LT(clipped, 800);
}

// In whatever order x is stored, and for any number of threads.
TEST_F(LearnedGridTest, TheScalesGradientIsTheSameToTheLastBit) {
  const Shape shape{517, 67};
  const int before = num_threads();
  set_num_threads(1);
  const auto [dx, dscale] = gradients(shape, Order::RowMajor);
  EXPECT_NE(dscale, 0.0f);
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const auto [other_dx, other] = gradients(shape, Order::BatchSlabs);
    EXPECT_EQ(other, dscale);
    EXPECT_EQ(other_dx, dx);
  }
  set_num_threads(before);
}

TEST_F(LearnedGridTest, GivesTheValuesOfTheGridAlone) {
  const Variable x = random_tensor(Shape{9, 31}, "x");
  EXPECT_EQ(fake_quantize(x, LearnedGrid{.grid = kGrid, .parameter = scale_parameter()})
                .value()
                .to_vector(),
            fake_quantize(x, kGrid, 9).value().to_vector());
}

}  // namespace
}  // namespace lacuna::fake_quantize_test
