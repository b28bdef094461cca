#include "lacuna/framework/kernels/rowwise/norm.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/rowwise/norm_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"

namespace lacuna::norm_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

template <class T>
struct Norm {
  std::vector<T> y, mean, deviation, dx, product;
};

// Runs forward and backward by `forward` and `backward` on values of type T.
template <class T, class Forward, class Backward>
Norm<T> run(const Forward& forward, const Backward& backward, int64_t rows, int64_t n) {
  const auto x = convert<T>(normal_values("x", rows * n, 2.0));
  const auto w = convert<T>(normal_values("w", n)), b = convert<T>(normal_values("b", n));
  const auto dy = convert<T>(normal_values("dy", rows * n));
  Norm<T> r{std::vector<T>(x.size()), std::vector<T>(static_cast<size_t>(rows)),
            std::vector<T>(static_cast<size_t>(rows)), std::vector<T>(x.size()),
            std::vector<T>(x.size())};
  forward(NormShape{rows, n}, 1e-5, x.data(), w.data(), b.data(), r.y.data(), r.mean.data(),
          r.deviation.data());
  backward(NormShape{rows, n}, x.data(), w.data(), r.mean.data(), r.deviation.data(), dy.data(),
           r.dx.data(), r.product.data());
  return r;
}

Norm<double> expected_norm(int64_t rows, int64_t n) {
  return run<double>(reference::layer_norm<double>, reference::layer_norm_gradient<double>, rows,
                     n);
}

void expect_reference(int64_t rows, int64_t n) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << n);
  const NormShape shape{rows, n};
  const auto x = normal_values("x", rows * n, 2.0), w = normal_values("w", n),
             b = normal_values("b", n), dy = normal_values("dy", rows * n);
  std::vector<float> y(x.size()), mean(static_cast<size_t>(rows)), deviation = mean;
  layer_norm(shape, 1e-5, x.data(), w.data(), b.data(), y.data(), mean.data(), deviation.data());
  const Norm<double> expected = expected_norm(rows, n);
  EXPECT_LE(largest_error(y, expected.y), 5e-6);
  // With one or two features 1/deviation is large, and so is what rounding makes of it.
  const double tolerance = n < 3 ? 2e-3 : 2e-5;
  for (const bool adds : {false, true}) {
    const test::NormGradientResult found(shape,
                                         {.x = x.data(),
                                          .weight = w.data(),
                                          .mean = mean.data(),
                                          .inverse_deviation = deviation.data(),
                                          .dy = dy.data()},
                                         adds);
    const auto dx = adds ? test::plus(expected.dx, convert<double>(found.added)) : expected.dx;
    EXPECT_LE(largest_error(found.dx, dx), tolerance);
    EXPECT_LE(largest_error(found.products, test::block_sums(expected.product, rows, n)), 3e-5);
    EXPECT_LE(largest_error(found.totals, test::block_sums(convert<double>(dy), rows, n)), 1e-5);
  }
}

TEST(LayerNorm, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    if (n > 0) expect_reference(3, n);
  }
  for (const int64_t rows : {1, 63, 64, 65, 130}) expect_reference(rows, 17);
}

TEST(LayerNorm, OfASumIsThatOfTheSum) {
  for (const int64_t n : {1, 7, 64, 300}) {
    const NormShape shape{67, n};
    const auto a = normal_values("a", 67 * n), b = normal_values("b", 67 * n);
    const auto w = normal_values("w", n), bias = normal_values("bias", n);
    const std::vector<float> sum = test::plus(a, b);
    std::vector<float> y(sum.size()), mean(67), deviation(67),
        found = y, found_mean = mean, found_deviation = mean, found_sum = y;
    layer_norm(shape, 1e-5, sum.data(), w.data(), bias.data(), y.data(), mean.data(),
               deviation.data());
    layer_norm_of_sum(shape, 1e-5, a.data(), b.data(), w.data(), bias.data(), found_sum.data(),
                      found.data(), found_mean.data(), found_deviation.data());
    EXPECT_EQ(found_sum, sum);
    EXPECT_EQ(found, y);
    EXPECT_EQ(found_mean, mean);
    EXPECT_EQ(found_deviation, deviation);
  }
}

TEST(LayerNorm, ReferenceGradientAgreesWithTheComplexStep) {
  for (const int64_t n : {1, 2, 5, 17}) {
    const auto expected = expected_norm(1, n);
    const auto w = convert<Complex>(normal_values("w", n));
    const auto b = convert<Complex>(normal_values("b", n));
    const auto of_input = [&](const std::vector<Complex>& x) {
      std::vector<Complex> y(x.size()), mean(1), deviation(1);
      reference::layer_norm(NormShape{1, n}, 1e-5, x.data(), w.data(), b.data(), y.data(),
                            mean.data(), deviation.data());
      return y;
    };
    const auto x = convert<Complex>(normal_values("x", n, 2.0));
    const auto dy = convert<double>(normal_values("dy", n));
    EXPECT_LE(largest_error(expected.dx, test::complex_step(of_input, x, dy)), 1e-10) << n;
    const auto of_weight = [&](const std::vector<Complex>& weight) {
      std::vector<Complex> y(x.size()), mean(1), deviation(1);
      reference::layer_norm(NormShape{1, n}, 1e-5, x.data(), weight.data(), b.data(), y.data(),
                            mean.data(), deviation.data());
      return y;
    };
    EXPECT_LE(largest_error(expected.product, test::complex_step(of_weight, w, dy)), 1e-12) << n;
  }
}

TEST(LayerNorm, ALargeMeanCostsNoPrecision) {
  const int64_t n = 64;
  std::vector<float> x(64), y(64), mean(1), deviation(1);
  const std::vector<float> ones(64, 1.0f), zeros(64, 0.0f);
  for (size_t i = 0; i < 64; ++i) x[i] = 100000.0f + static_cast<float>(i);
  layer_norm({1, n}, 1e-5, x.data(), ones.data(), zeros.data(), y.data(), mean.data(),
             deviation.data());
  EXPECT_EQ(mean[0], 100031.5f);
  EXPECT_NEAR(deviation[0], 1.0 / std::sqrt((64.0 * 64.0 - 1.0) / 12.0), 1e-7);
}

}  // namespace
}  // namespace lacuna::norm_test
