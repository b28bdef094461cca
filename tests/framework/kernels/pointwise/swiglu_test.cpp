#include "lacuna/framework/kernels/pointwise/swiglu.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/pointwise/swiglu_reference.hpp"

namespace lacuna::swiglu_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

TEST(Swiglu, AgreesWithTheReferenceForManySizes) {
  std::vector<int64_t> sizes = test::sizes();
  sizes.push_back(20000);  // several tasks a row
  for (const int64_t n : sizes) {
    const auto x = normal_values("x", 2 * 2 * n, 3.0), dy = normal_values("dy", 2 * n);
    std::vector<float> y(dy.size()), dx(x.size());
    swiglu(2, n, x.data(), y.data());
    swiglu_gradient(2, n, x.data(), dy.data(), dx.data());
    const auto xd = convert<double>(x), dyd = convert<double>(dy);
    std::vector<double> expected(dy.size()), slopes(x.size());
    reference::swiglu(2, n, xd.data(), expected.data());
    reference::swiglu_gradient(2, n, xd.data(), dyd.data(), slopes.data());
    EXPECT_LE(largest_error(y, expected), 1e-6) << n;
    EXPECT_LE(largest_error(dx, slopes), 2e-6) << n;
  }
}

TEST(Swiglu, ReferenceGradientAgreesWithTheComplexStep) {
  const int64_t n = 9;
  const auto x = convert<Complex>(normal_values("x", 2 * n, 2.0));
  const auto dy = convert<double>(normal_values("dy", n));
  const auto forward = [&](const std::vector<Complex>& in) {
    std::vector<Complex> y(static_cast<size_t>(n));
    reference::swiglu(1, n, in.data(), y.data());
    return y;
  };
  const auto xd = convert<double>(normal_values("x", 2 * n, 2.0));
  std::vector<double> dx(xd.size());
  reference::swiglu_gradient(1, n, xd.data(), dy.data(), dx.data());
  EXPECT_LE(largest_error(dx, test::complex_step(forward, x, dy)), 1e-12);
}

}  // namespace
}  // namespace lacuna::swiglu_test
