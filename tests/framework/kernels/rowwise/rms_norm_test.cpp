#include "lacuna/framework/kernels/rowwise/rms_norm.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/rowwise/norm_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"

namespace lacuna::rms_norm_test {
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

void expect_reference_of_rms_norm(int64_t rows, int64_t n) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << n);
  const NormShape shape{rows, n};
  const auto x = normal_values("x", rows * n, 2.0), w = normal_values("w", n),
             dy = normal_values("dy", rows * n);
  std::vector<float> y(x.size()), root(static_cast<size_t>(rows));
  rms_norm(shape, 1e-2, x.data(), w.data(), y.data(), root.data());
  const auto expected =
      run<double>(reference::rms_norm<double>, reference::rms_norm_gradient<double>, rows, n);
  EXPECT_LE(largest_error(y, expected.y), 2e-6);
  for (const bool adds : {false, true}) {
    const test::NormGradientResult found(
        shape,
        {.x = x.data(), .weight = w.data(), .inverse_deviation = root.data(), .dy = dy.data()},
        adds);
    const auto dx = adds ? test::plus(expected.dx, convert<double>(found.added)) : expected.dx;
    EXPECT_LE(largest_error(found.dx, dx), 5e-6);
    EXPECT_LE(largest_error(found.products, test::block_sums(expected.product, rows, n)), 1e-5);
  }
}

TEST(RmsNorm, AgreesWithTheReferenceForManySizes) {
  for (const int64_t n : test::sizes()) {
    if (n > 0) expect_reference_of_rms_norm(3, n);
  }
  for (const int64_t rows : {1, 63, 64, 65, 130}) expect_reference_of_rms_norm(rows, 17);
}

TEST(RmsNorm, OfASumIsThatOfTheSum) {
  for (const int64_t n : {1, 7, 64, 300}) {
    const NormShape shape{67, n};
    const auto a = normal_values("a", 67 * n), b = normal_values("b", 67 * n),
               w = normal_values("w", n);
    const std::vector<float> sum = test::plus(a, b);
    std::vector<float> y(sum.size()), root(67), found = y, found_root = root, found_sum = y;
    rms_norm(shape, 1e-5, sum.data(), w.data(), y.data(), root.data());
    rms_norm_of_sum(shape, 1e-5, a.data(), b.data(), w.data(), found_sum.data(), found.data(),
                    found_root.data());
    EXPECT_EQ(found_sum, sum);
    EXPECT_EQ(found, y);
    EXPECT_EQ(found_root, root);
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
}  // namespace lacuna::rms_norm_test
