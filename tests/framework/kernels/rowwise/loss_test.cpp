#include "lacuna/framework/kernels/rowwise/loss.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/rowwise/loss_reference.h"

namespace lacuna {
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

TEST(CrossEntropy, AgreesWithTheReferenceForManySizes) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    for (const int64_t classes : test::sizes()) {
      if (classes == 0) continue;
      const int64_t examples = 5;
      const auto x = normal_values("x", examples * classes, 5.0);
      const auto wide = convert<double>(x);
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < examples; ++i) labels.push_back(i * 7 % classes);
      const CrossEntropyProblem problem{examples, classes, x.data(), labels.data(), smoothing};
      std::vector<float> dx(x.size());
      cross_entropy_gradient(problem, 0.2f, dx.data());
      std::vector<double> expected_dx(x.size());
      double expected = 0.0;
      for (int64_t i = 0; i < examples; ++i) {
        const double* row = wide.data() + i * classes;
        const int64_t label = labels[static_cast<size_t>(i)];
        expected += reference::cross_entropy(row, classes, label, smoothing);
        reference::cross_entropy_gradient(row, classes, label, smoothing, 0.2,
                                          expected_dx.data() + i * classes);
      }
      EXPECT_NEAR(cross_entropy(problem), expected, 1e-6 * (1.0 + std::abs(expected))) << classes;
      EXPECT_LE(largest_error(dx, expected_dx), 5e-7) << classes;
    }
  }
}

TEST(CrossEntropy, ReferenceGradientAgreesWithTheComplexStep) {
  for (const double smoothing : {0.0, 0.3}) {
    for (const int64_t classes : {1, 2, 10, 17}) {
      const auto x = convert<double>(normal_values("x", classes, 2.0));
      const int64_t label = classes / 2;
      std::vector<double> dx(x.size());
      reference::cross_entropy_gradient(x.data(), classes, label, smoothing, 1.0, dx.data());
      const auto function = [&](const std::vector<Complex>& z) {
        return std::vector{reference::cross_entropy(z.data(), classes, label, smoothing)};
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

}  // namespace
}  // namespace lacuna
