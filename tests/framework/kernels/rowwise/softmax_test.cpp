#include "lacuna/framework/kernels/rowwise/softmax.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/softmax_reference.hpp"

namespace lacuna::softmax_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

constexpr SoftmaxKind kBoth[] = {SoftmaxKind::Probabilities, SoftmaxKind::Logarithm};

TEST(Softmax, AgreesWithTheReferenceForManySizes) {
  for (const SoftmaxKind kind : kBoth) {
    for (const int64_t n : test::sizes()) {
      const int64_t rows = 3;
      const auto x = normal_values("x", rows * n, 4.0), dy = normal_values("dy", rows * n);
      std::vector<float> y(x.size()), dx(x.size());
      std::vector<double> expected(x.size()), expected_dx(x.size());
      softmax(kind, rows, n, x.data(), y.data());
      reference::softmax(kind, rows, n, convert<double>(x).data(), expected.data());
      EXPECT_LE(largest_error(y, expected), 3e-6) << n;
      softmax_gradient(kind, rows, n, y.data(), dy.data(), dx.data());
      reference::softmax_gradient(kind, rows, n, expected.data(), convert<double>(dy).data(),
                                  expected_dx.data());
      EXPECT_LE(largest_error(dx, expected_dx), 1e-5) << n;
    }
  }
}

TEST(Softmax, ReferenceGradientAgreesWithTheComplexStep) {
  for (const SoftmaxKind kind : kBoth) {
    for (const int64_t n : {1, 2, 7, 17}) {
      const auto x = convert<double>(normal_values("x", n, 2.0));
      const auto dy = convert<double>(normal_values("dy", n));
      const auto function = [&](const std::vector<Complex>& z) {
        std::vector<Complex> y(z.size());
        reference::softmax(kind, 1, n, z.data(), y.data());
        return y;
      };
      std::vector<double> y(x.size()), dx(x.size());
      reference::softmax(kind, 1, n, x.data(), y.data());
      reference::softmax_gradient(kind, 1, n, y.data(), dy.data(), dx.data());
      const std::vector<Complex> point(x.begin(), x.end());
      EXPECT_LE(largest_error(dx, test::complex_step(function, point, dy)), 1e-13) << n;
    }
  }
}

TEST(Softmax, IsStableForLargeValuesAndKeepsNan) {
  const std::vector<float> x{1000.0f, 1001.0f, -1000.0f};
  std::vector<float> y(3);
  softmax(SoftmaxKind::Probabilities, 1, 3, x.data(), y.data());
  EXPECT_NEAR(y[1], 0.7310586f, 1e-6);
  EXPECT_EQ(y[2], 0.0f);
  softmax(SoftmaxKind::Logarithm, 1, 3, x.data(), y.data());
  EXPECT_NEAR(y[0], -1.3132616f, 1e-6);
  EXPECT_NEAR(y[2], -2001.3132f, 1e-3);

  // One NaN makes its row NaN and no other, wherever it stands.
  for (const SoftmaxKind kind : kBoth) {
    for (size_t place = 0; place < 19; ++place) {
      std::vector<float> rows(2 * 19, 0.5f), out(rows.size());
      rows[place] = std::numeric_limits<float>::quiet_NaN();
      softmax(kind, 2, 19, rows.data(), out.data());
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i < 19) << i;
    }
  }
}

}  // namespace
}  // namespace lacuna::softmax_test
