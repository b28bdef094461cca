#include "lacuna/framework/kernels/rowwise/loss.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.hpp"

namespace lacuna::loss_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

TEST(SquaredDifference, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    const auto a = normal_values("a", n), b = normal_values("b", n);
    const double expected = reference::sum_squared_difference<double>(convert<double>(a).data(),
                                                                      convert<double>(b).data(), n);
    EXPECT_NEAR(sum_squared_difference(a, b), expected, 1e-6 * (1.0 + expected)) << n;
    std::vector<float> y(a.size()), expected_y(a.size());
    scaled_difference(0.7f, a, b, y);
    reference::scaled_difference(0.7f, a.data(), b.data(), expected_y.data(), n);
    EXPECT_LE(largest_error(y, expected_y), 1e-7) << n;
  }
}

// Class weights of both kinds: none, and from 0 to 2.
std::vector<float> some_weights(bool has_weights, int64_t classes) {
  std::vector<float> weights;
  for (int64_t j = 0; has_weights && j < classes; ++j) {
    weights.push_back(static_cast<float>((j + 1) % 5) * 0.5f);
  }
  return weights;
}

reference::ClassShares shares_of(int64_t classes, double smoothing,
                                 const std::vector<float>& weights, int64_t label) {
  double total = 0.0;
  for (const float weight : weights) total += weight;
  return {classes, smoothing, weights.empty() ? nullptr : weights.data(), total, label};
}

TEST(CrossEntropy, AgreesWithTheReferenceForManySizes) {
  for (const auto& [smoothing, is_weighted] : std::vector<std::pair<double, bool>>{
           {0.0, false}, {0.1, false}, {1.0, false}, {0.0, true}, {0.2, true}}) {
    for (const int64_t classes : test::sizes()) {
      if (classes == 0) continue;
      const int64_t examples = 5;
      const std::vector<float> weights = some_weights(is_weighted, classes);
      const auto x = normal_values("x", examples * classes, 5.0);
      const auto wide = convert<double>(x);
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < examples; ++i) labels.push_back(i * 7 % classes);
      const CrossEntropyProblem problem{examples,  classes,
                                        x.data(),  labels.data(),
                                        smoothing, weights.empty() ? nullptr : weights.data()};
      std::vector<float> dx(x.size());
      cross_entropy_gradient(problem, 0.2f, dx.data());
      std::vector<double> expected_dx(x.size());
      double expected = 0.0;
      for (int64_t i = 0; i < examples; ++i) {
        const double* row = wide.data() + i * classes;
        const int64_t label = labels[static_cast<size_t>(i)];
        const auto shares = shares_of(classes, smoothing, weights, label);
        expected += reference::cross_entropy(row, classes, label, shares);
        reference::cross_entropy_gradient(row, classes, label, shares, 0.2,
                                          expected_dx.data() + i * classes);
      }
      EXPECT_NEAR(cross_entropy(problem), expected, 1e-6 * (1.0 + std::abs(expected))) << classes;
      EXPECT_LE(largest_error(dx, expected_dx), 5e-7) << classes;
    }
  }
}

TEST(CrossEntropy, ReferenceGradientAgreesWithTheComplexStep) {
  for (const auto& [smoothing, is_weighted] :
       std::vector<std::pair<double, bool>>{{0.0, false}, {0.3, false}, {0.0, true}, {0.3, true}}) {
    for (const int64_t classes : {1, 2, 10, 17}) {
      const auto x = convert<double>(normal_values("x", classes, 2.0));
      const int64_t label = classes / 2;
      const std::vector<float> weights = some_weights(is_weighted, classes);
      const auto shares = shares_of(classes, smoothing, weights, label);
      std::vector<double> dx(x.size());
      reference::cross_entropy_gradient(x.data(), classes, label, shares, 1.0, dx.data());
      const auto function = [&](const std::vector<Complex>& z) {
        return std::vector{reference::cross_entropy(z.data(), classes, label, shares)};
      };
      const std::vector<Complex> point(x.begin(), x.end());
      EXPECT_LE(largest_error(dx, test::complex_step(function, point, {1.0})), 1e-13) << classes;
    }
  }
}

TEST(CrossEntropy, IsStableAndShowsNanAndInfinity) {
  const std::vector<int64_t> labels{0};
  const auto loss = [&](std::vector<float> logits) {
    return cross_entropy({1, static_cast<int64_t>(logits.size()), logits.data(), labels.data()});
  };
  EXPECT_NEAR(loss({1000.0f, 0.0f}), 0.0, 1e-12);
  EXPECT_NEAR(loss({0.0f, 1000.0f}), 1000.0, 1e-9);
  EXPECT_EQ(loss({-INFINITY, 0.0f}), INFINITY);
  EXPECT_NEAR(loss({0.0f, -INFINITY}), 0.0, 1e-12);
  EXPECT_TRUE(std::isnan(loss({0.0f, std::numeric_limits<float>::quiet_NaN()})));
  const std::vector<float> large{500.0f, 300.0f};
  std::vector<float> dx(2);
  cross_entropy_gradient({1, 2, large.data(), labels.data()}, 1.0f, dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0.0f, 0.0f}));
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  const int64_t examples = 6000, classes = 10;
  const auto x = normal_values("x", examples * classes);
  const std::vector<int64_t> labels(static_cast<size_t>(examples), 3);
  const CrossEntropyProblem problem{examples, classes, x.data(), labels.data()};
  set_num_threads(1);
  const double one = cross_entropy(problem);
  set_num_threads(3);
  EXPECT_EQ(cross_entropy(problem), one);
  set_num_threads(before);
}

TEST(BinaryCrossEntropy, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    const auto x = normal_values("x", n, 5.0);
    std::vector<float> targets(x.size()), dx(x.size());
    for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<float>(i % 3) * 0.5f;
    const auto wide = convert<double>(x), wide_targets = convert<double>(targets);
    const double expected =
        reference::sum_binary_cross_entropy<double>(wide.data(), wide_targets.data(), n);
    EXPECT_NEAR(binary_cross_entropy(x, targets), expected, 1e-6 * (1.0 + expected)) << n;
    binary_cross_entropy_gradient(0.3f, x, targets, dx);
    std::vector<double> expected_dx(x.size());
    reference::binary_cross_entropy_gradient(0.3, wide.data(), wide_targets.data(),
                                             expected_dx.data(), n);
    EXPECT_LE(largest_error(dx, expected_dx), 2e-7) << n;
  }
}

TEST(BinaryCrossEntropy, ReferenceGradientAgreesWithTheComplexStep) {
  for (const double x : {-30.0, -2.0, -0.1, 0.2, 3.0, 40.0}) {
    for (const double target : {0.0, 0.3, 1.0}) {
      double dx = 0.0;
      reference::binary_cross_entropy_gradient(1.0, &x, &target, &dx, 1);
      const Complex moved = reference::binary_cross_entropy(Complex(x, 1e-30), Complex(target));
      EXPECT_NEAR(dx, moved.imag() / 1e-30, 1e-14) << x << " " << target;
    }
  }
}

TEST(WeightedBinaryCrossEntropy, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    const auto x = normal_values("x", n, 5.0);
    std::vector<float> targets(x.size()), weights(x.size()), ones(x.size(), 1.0f), dx(x.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      targets[i] = static_cast<float>(i % 3) * 0.5f;
      weights[i] = static_cast<float>(i % 5) * 1.5f;
    }
    const auto wide = convert<double>(x), wide_targets = convert<double>(targets),
               wide_weights = convert<double>(weights);
    const double expected = reference::sum_weighted_binary_cross_entropy<double>(
        wide.data(), wide_targets.data(), wide_weights.data(), n);
    EXPECT_NEAR(binary_cross_entropy(x, targets, weights), expected, 1e-6 * (1.0 + expected)) << n;
    EXPECT_NEAR(binary_cross_entropy(x, targets, ones), binary_cross_entropy(x, targets),
                1e-6 * (1.0 + expected))
        << n;
    binary_cross_entropy_gradient(0.3f, x, targets, weights, dx);
    std::vector<double> expected_dx(x.size());
    reference::weighted_binary_cross_entropy_gradient(0.3, wide.data(), wide_targets.data(),
                                                      wide_weights.data(), expected_dx.data(), n);
    EXPECT_LE(largest_error(dx, expected_dx), 1e-6) << n;
  }
}

TEST(WeightedBinaryCrossEntropy, ReferenceGradientAgreesWithTheComplexStep) {
  for (const double x : {-30.0, -2.0, -0.1, 0.2, 3.0, 40.0}) {
    for (const double target : {0.0, 0.3, 1.0}) {
      for (const double weight : {0.0, 0.25, 1.0, 7.0}) {
        double dx = 0.0;
        reference::weighted_binary_cross_entropy_gradient(1.0, &x, &target, &weight, &dx, 1);
        const Complex moved = reference::weighted_binary_cross_entropy(
            Complex(x, 1e-30), Complex(target), Complex(weight));
        EXPECT_NEAR(dx, moved.imag() / 1e-30, 1e-13) << x << " " << target << " " << weight;
      }
    }
  }
}

TEST(WeightedBinaryCrossEntropy, IsStableAndShowsNan) {
  const auto loss = [](float logit, float target) {
    return binary_cross_entropy(std::vector{logit}, std::vector{target}, std::vector{3.0f});
  };
  EXPECT_EQ(loss(1000.0f, 1.0f), 0.0);
  EXPECT_EQ(loss(1000.0f, 0.0f), 1000.0);
  EXPECT_EQ(loss(-1000.0f, 1.0f), 3000.0);
  EXPECT_NEAR(loss(0.0f, 1.0f), 3.0 * std::log(2.0), 1e-6);
  EXPECT_TRUE(std::isnan(loss(std::numeric_limits<float>::quiet_NaN(), 1.0f)));
}

TEST(BinaryCrossEntropy, IsStableAndShowsNan) {
  const auto loss = [](float logit, float target) {
    return binary_cross_entropy(std::vector{logit}, std::vector{target});
  };
  EXPECT_EQ(loss(1000.0f, 1.0f), 0.0);
  EXPECT_EQ(loss(1000.0f, 0.0f), 1000.0);
  EXPECT_EQ(loss(-1000.0f, 1.0f), 1000.0);
  EXPECT_NEAR(loss(-20.0f, 0.0f), std::log1p(std::exp(-20.0)), 1e-15);
  EXPECT_NEAR(loss(0.0f, 0.0f), std::log(2.0), 1e-7);
  EXPECT_TRUE(std::isnan(loss(std::numeric_limits<float>::quiet_NaN(), 1.0f)));
}

}  // namespace
}  // namespace lacuna::loss_test
