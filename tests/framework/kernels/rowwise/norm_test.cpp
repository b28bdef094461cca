#include "lacuna/framework/kernels/rowwise/norm.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"

namespace lacuna {
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

TEST(LayerNorm, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    if (n == 0) continue;
    const auto found = run<float>(layer_norm, layer_norm_gradient, 3, n);
    const auto expected =
        run<double>(reference::layer_norm<double>, reference::layer_norm_gradient<double>, 3, n);
    EXPECT_LE(largest_error(found.y, expected.y), 5e-6) << n;
    // With one or two features 1/deviation is large, and so is what rounding makes of it.
    const double tolerance = n < 3 ? 2e-3 : 2e-5;
    EXPECT_LE(largest_error(found.dx, expected.dx), tolerance) << n;
    EXPECT_LE(largest_error(found.product, expected.product), 5e-6) << n;
  }
}

TEST(LayerNorm, ReferenceGradientAgreesWithTheComplexStep) {
  for (const int64_t n : {1, 2, 5, 17}) {
    const auto expected =
        run<double>(reference::layer_norm<double>, reference::layer_norm_gradient<double>, 1, n);
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
}  // namespace lacuna
