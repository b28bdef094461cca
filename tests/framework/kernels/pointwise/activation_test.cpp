#include "lacuna/framework/kernels/pointwise/activation.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/activation_reference.hpp"

namespace lacuna::activation_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;
using testing::ThrowsMessage;

constexpr Activation kAll[] = {Activation::ReLU,       Activation::GELU,    Activation::GELUTanh,
                               Activation::SiLU,       Activation::Sigmoid, Activation::Tanh,
                               Activation::SquaredReLU};

std::vector<float> activated(Activation kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  activate(kind, x, y);
  return y;
}

std::vector<float> saved_for(Activation kind, const std::vector<float>& x) {
  return derives_from_output(kind) ? activated(kind, x) : x;
}

TEST(Activation, AgreesWithTheReferenceForManySizes) {
  for (const Activation kind : kAll) {
    for (const int64_t n : test::sizes()) {
      const auto x = normal_values("x", n, 3.0), dy = normal_values("dy", n);
      std::vector<double> y(x.size()), dx(x.size());
      reference::activate(kind, convert<double>(x).data(), y.data(), n);
      EXPECT_LE(largest_error(activated(kind, x), y), 4e-7) << n;

      const auto saved = saved_for(kind, x);
      std::vector<float> found(x.size());
      activate_gradient(kind, saved, dy, found);
      reference::activate_gradient(kind, convert<double>(saved).data(), convert<double>(dy).data(),
                                   dx.data(), n);
      EXPECT_LE(largest_error(found, dx), 4e-7) << n;
    }
  }
}

TEST(Activation, IsAccurateOverAllMagnitudes) {
  std::vector<float> x;
  for (float value = -30.0f; value < 30.0f; value += 0.00917f) x.push_back(value);
  for (const Activation kind : kAll) {
    std::vector<double> y(x.size());
    reference::activate(kind, convert<double>(x).data(), y.data(), static_cast<int64_t>(x.size()));
    EXPECT_LE(largest_error(activated(kind, x), y), 3e-7);
  }
  // The tail of GELU keeps its relative accuracy, where ½(1 + erf) has no digit left.
  EXPECT_NEAR(
      activated(Activation::GELU, {-6.0f})[0] / (-6.0 * 0.5 * std::erfc(6.0 / std::sqrt(2.0))), 1.0,
      5e-6);
}

TEST(Activation, ReferenceDerivativesAgreeWithTheComplexStep) {
  for (const Activation kind : kAll) {
    for (const double x : {-4.0, -1.3, -0.2, 0.1, 0.7, 2.5, 4.0}) {
      const Complex moved = reference::activation(kind, Complex(x, 1e-30));
      const double saved = derives_from_output(kind) ? reference::activation(kind, x) : x;
      EXPECT_NEAR(reference::activation_derivative(kind, saved), moved.imag() / 1e-30, 1e-13) << x;
    }
  }
}

TEST(Activation, ReferenceAgreesWithCentralDifferences) {
  constexpr double kStep = 1e-6;
  for (const Activation kind : kAll) {
    for (const double x : {-3.0, -0.5, 0.4, 3.0}) {
      const double saved = derives_from_output(kind) ? reference::activation(kind, x) : x;
      const double slope =
          (reference::activation(kind, x + kStep) - reference::activation(kind, x - kStep)) /
          (2.0 * kStep);
      EXPECT_NEAR(reference::activation_derivative(kind, saved), slope, 1e-9) << x;
    }
  }
}

TEST(Activation, NanStaysNanAndFiniteStaysFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = std::numeric_limits<float>::max();
  for (const Activation kind : kAll) {
    // In the middle of a vector and in the part past the last whole one.
    for (const size_t place : {size_t{5}, size_t{32}}) {
      std::vector<float> x(33, 0.5f);
      x[place] = nan;
      const auto y = activated(kind, x);
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == place) << i;
    }
    if (kind == Activation::SquaredReLU) continue;  // huge² is infinite
    for (const float y : activated(kind, {huge, -huge, 1e20f, -1e20f, 0.0f, -0.0f, 1e-40f})) {
      EXPECT_TRUE(std::isfinite(y));
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(activated(Activation::ReLU, {infinity, -infinity})[0], infinity);
  EXPECT_EQ(activated(Activation::ReLU, {infinity, -infinity})[1], 0.0f);
  EXPECT_EQ(activated(Activation::Sigmoid, {infinity, -infinity})[1], 0.0f);
  EXPECT_EQ(activated(Activation::Tanh, {infinity, -infinity})[1], -1.0f);
}

TEST(Activation, ReluSelectsItsGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y{0.0f, 2.0f, -0.0f, nan, 1.0f}, dy{nan, 3.0f, INFINITY, 4.0f, nan};
  std::vector<float> dx(5);
  activate_gradient(Activation::ReLU, y, dy, dx);
  EXPECT_EQ(dx[0], 0.0f);
  EXPECT_EQ(dx[1], 3.0f);
  EXPECT_EQ(dx[2], 0.0f);
  EXPECT_EQ(dx[3], 4.0f);
  EXPECT_TRUE(std::isnan(dx[4]));
}

TEST(Activation, SquaredReluSelectsItsGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{-1.0f, 2.0f, -0.0f, 0.5f, nan}, dy{nan, 3.0f, INFINITY, nan, 1.0f};
  std::vector<float> dx(5);
  activate_gradient(Activation::SquaredReLU, x, dy, dx);
  EXPECT_EQ(dx[0], 0.0f);
  EXPECT_EQ(dx[1], 12.0f);
  EXPECT_EQ(dx[2], 0.0f);
  EXPECT_TRUE(std::isnan(dx[3]));
  EXPECT_TRUE(std::isnan(dx[4]));
  EXPECT_EQ(activated(Activation::SquaredReLU, {-INFINITY, 3.0f, -0.0f}),
            (std::vector<float>{0.0f, 9.0f, 0.0f}));
}

TEST(LeakyRelu, AgreesWithTheReferenceForManySizes) {
  for (const float slope : {0.0f, 0.01f, 0.2f, 1.5f}) {
    for (const int64_t n : test::sizes()) {
      const auto x = normal_values("x", n, 3.0), dy = normal_values("dy", n);
      std::vector<float> y(x.size()), dx(x.size()), expected(x.size());
      leaky_relu(slope, x, y);
      reference::leaky_relu(slope, x.data(), expected.data(), n);
      EXPECT_EQ(y, expected) << n;
      leaky_relu_gradient(slope, y, dy, dx);
      reference::leaky_relu_gradient(slope, y.data(), dy.data(), expected.data(), n);
      EXPECT_EQ(dx, expected) << n;
    }
  }
}

TEST(LeakyRelu, ReferenceDerivativeAgreesWithTheComplexStep) {
  for (const double x : {-4.0, -0.2, 0.1, 2.5}) {
    Complex y;
    const Complex moved(x, 1e-30);
    reference::leaky_relu(Complex(0.2), &moved, &y, 1);
    double output = 0.0, slope = 0.0;
    const double one = 1.0;
    reference::leaky_relu(0.2, &x, &output, 1);
    reference::leaky_relu_gradient(0.2, &output, &one, &slope, 1);
    EXPECT_NEAR(slope, y.imag() / 1e-30, 1e-15) << x;
  }
}

TEST(LeakyRelu, NanStaysNanAndZeroHasTheSlope) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{nan, -INFINITY, -2.0f, -0.0f, 0.0f, 3.0f};
  std::vector<float> y(6), dx(6);
  leaky_relu(0.5f, x, y);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()),
            (std::vector<float>{-INFINITY, -1.0f, 0.0f, 0.0f, 3.0f}));
  leaky_relu_gradient(0.5f, y, std::vector<float>{4.0f, 4.0f, 4.0f, 4.0f, 4.0f, 4.0f}, dx);
  EXPECT_EQ(dx, (std::vector<float>{4.0f, 2.0f, 2.0f, 2.0f, 2.0f, 4.0f}));
}

TEST(Activation, DifferentLengthsAreAnError) {
  const std::vector<float> x(3), dy(2);
  std::vector<float> y(2), dx(3);
  EXPECT_THAT([&] { activate(Activation::ReLU, x, y); },
              ThrowsMessage<ShapeError>("an activation on arrays of 3 and 2 elements"));
  EXPECT_THAT([&] { activate_gradient(Activation::ReLU, x, dy, dx); },
              ThrowsMessage<ShapeError>("an activation on arrays of 2 and 3 elements"));
  EXPECT_THAT([&] { leaky_relu(0.1f, x, y); },
              ThrowsMessage<ShapeError>("an activation on arrays of 3 and 2 elements"));
  EXPECT_THAT([&] { leaky_relu_gradient(0.1f, x, dy, dx); },
              ThrowsMessage<ShapeError>("an activation on arrays of 2 and 3 elements"));
}

}  // namespace
}  // namespace lacuna::activation_test
