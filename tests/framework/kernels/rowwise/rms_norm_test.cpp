#include "lacuna/framework/kernels/rowwise/rms_norm.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"

namespace lacuna {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

template <class T>
struct Norm {
  std::vector<T> y, root, dx, product;
};

template <class T, class Forward, class Backward>
Norm<T> run(const Forward& forward, const Backward& backward, int64_t rows, int64_t n) {
  const auto x = convert<T>(normal_values("x", rows * n, 2.0)),
             w = convert<T>(normal_values("w", n));
  const auto dy = convert<T>(normal_values("dy", rows * n));
  Norm<T> r{std::vector<T>(x.size()), std::vector<T>(static_cast<size_t>(rows)),
            std::vector<T>(x.size()), std::vector<T>(x.size())};
  forward(NormShape{rows, n}, 1e-2, x.data(), w.data(), r.y.data(), r.root.data());
  backward(NormShape{rows, n}, x.data(), w.data(), r.root.data(), dy.data(), r.dx.data(),
           r.product.data());
  return r;
}

TEST(RmsNorm, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    if (n == 0) continue;
    const auto found = run<float>(rms_norm, rms_norm_gradient, 3, n);
    const auto expected =
        run<double>(reference::rms_norm<double>, reference::rms_norm_gradient<double>, 3, n);
    EXPECT_LE(largest_error(found.y, expected.y), 2e-6) << n;
    EXPECT_LE(largest_error(found.dx, expected.dx), 5e-6) << n;
    EXPECT_LE(largest_error(found.product, expected.product), 2e-6) << n;
  }
}

TEST(RmsNorm, ReferenceGradientAgreesWithTheComplexStep) {
  for (const int64_t n : {1, 2, 5, 17}) {
    const auto found =
        run<double>(reference::rms_norm<double>, reference::rms_norm_gradient<double>, 1, n);
    const auto w = convert<Complex>(normal_values("w", n));
    const auto x = convert<Complex>(normal_values("x", n, 2.0));
    const auto dy = convert<double>(normal_values("dy", n));
    const auto forward = [&](const std::vector<Complex>& in, const std::vector<Complex>& weight) {
      std::vector<Complex> y(x.size()), root(1);
      reference::rms_norm(NormShape{1, n}, 1e-2, in.data(), weight.data(), y.data(), root.data());
      return y;
    };
    const auto of_input = [&](const std::vector<Complex>& in) { return forward(in, w); };
    const auto of_weight = [&](const std::vector<Complex>& in) { return forward(x, in); };
    EXPECT_LE(largest_error(found.dx, test::complex_step(of_input, x, dy)), 1e-10) << n;
    EXPECT_LE(largest_error(found.product, test::complex_step(of_weight, w, dy)), 1e-12) << n;
  }
}

}  // namespace
}  // namespace lacuna
