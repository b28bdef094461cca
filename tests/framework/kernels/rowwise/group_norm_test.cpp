#include "lacuna/framework/kernels/rowwise/group_norm.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/kernels/rowwise/norm_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/kernels/rowwise/group_norm_reference.hpp"

namespace lacuna::group_norm_test {
namespace {

using test::Complex;
using test::convert;
using test::largest_error;
using test::normal_values;

template <class T>
struct Norm {
  std::vector<T> y, mean, deviation, dx, products, totals;
};

template <class T>
std::vector<T> zeros(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count));
}

// Runs forward and backward by `forward` and `backward` on values of type T.
template <class T, class Forward, class Backward>
Norm<T> run(const Forward& forward, const Backward& backward, const GroupNormShape& shape) {
  const int64_t images = shape.batch * shape.channels, count = images * shape.size;
  const auto x = convert<T>(normal_values("x", count, 2.0));
  const auto w = convert<T>(normal_values("w", shape.channels));
  const auto b = convert<T>(normal_values("b", shape.channels));
  const auto dy = convert<T>(normal_values("dy", count));
  const int64_t groups = shape.batch * shape.groups;
  Norm<T> r{zeros<T>(count), zeros<T>(groups), zeros<T>(groups),
            zeros<T>(count), zeros<T>(images), zeros<T>(images)};
  forward(shape, 1e-5, x.data(), w.data(), b.data(), r.y.data(), r.mean.data(), r.deviation.data());
  backward(shape, x.data(), w.data(), r.mean.data(), r.deviation.data(), dy.data(), r.dx.data(),
           r.products.data(), r.totals.data());
  return r;
}

const std::vector<GroupNormShape>& shapes() {
  static const std::vector<GroupNormShape> all = [] {
    std::vector<GroupNormShape> list;
    for (const int64_t size : {1, 2, 3, 7, 15, 16, 17, 33, 49, 64, 100, 1031}) {
      list.push_back({.batch = 2, .channels = 6, .groups = 1, .size = size});
      list.push_back({.batch = 3, .channels = 6, .groups = 3, .size = size});
      list.push_back({.batch = 1, .channels = 5, .groups = 5, .size = size + 3});
    }
    list.push_back({.batch = 37, .channels = 64, .groups = 32, .size = 64});
    return list;
  }();
  return all;
}

void gradient_alone(const GroupNormShape& shape, const float* x, const float* weight,
                    const float* mean, const float* inverse_deviation, const float* dy, float* dx,
                    float* products, float* totals) {
  group_norm_gradient(shape, x, weight, mean, inverse_deviation, dy, nullptr, dx, products, totals);
}

void gradient_onto(const GroupNormShape& shape, const float* x, const float* weight,
                   const float* mean, const float* inverse_deviation, const float* dy, float* dx,
                   float* products, float* totals) {
  const auto added = normal_values("added", shape.batch * shape.channels * shape.size);
  std::ranges::copy(added, dx);
  group_norm_gradient(shape, x, weight, mean, inverse_deviation, dy, dx, dx, products, totals);
}

TEST(GroupNorm, OfASumIsThatOfTheSum) {
  for (const GroupNormShape& shape : shapes()) {
    const int64_t count = shape.batch * shape.channels * shape.size;
    const auto a = normal_values("a", count), b = normal_values("b", count),
               w = normal_values("w", shape.channels), bias = normal_values("bias", shape.channels);
    const std::vector<float> sum = test::plus(a, b);
    std::vector<float> y(sum.size()), mean(static_cast<size_t>(shape.batch * shape.groups)),
        deviation = mean, found = y, found_mean = mean, found_deviation = mean, found_sum = y;
    group_norm(shape, 1e-5, sum.data(), w.data(), bias.data(), y.data(), mean.data(),
               deviation.data());
    group_norm_of_sum(shape, 1e-5, a.data(), b.data(), w.data(), bias.data(), found_sum.data(),
                      found.data(), found_mean.data(), found_deviation.data());
    EXPECT_EQ(found_sum, sum);
    EXPECT_EQ(found, y);
    EXPECT_EQ(found_mean, mean);
    EXPECT_EQ(found_deviation, deviation);
  }
}

TEST(GroupNorm, AnotherGradientIsAddedInPlace) {
  for (const GroupNormShape& shape : shapes()) {
    const auto alone = run<float>(group_norm, gradient_alone, shape);
    const auto sum = run<float>(group_norm, gradient_onto, shape);
    const auto added = normal_values("added", std::ssize(alone.dx));
    std::vector<double> expected = convert<double>(alone.dx);
    for (size_t i = 0; i < added.size(); ++i) expected[i] += added[i];
    EXPECT_LE(largest_error(sum.dx, expected), 1e-6);
    EXPECT_EQ(sum.products, alone.products);
  }
}

TEST(GroupNorm, AgreesWithTheReferenceForManySizes) {
  for (const GroupNormShape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << shape.channels << " " << shape.groups << " " << shape.size);
    const auto found = run<float>(group_norm, gradient_alone, shape);
    const auto expected =
        run<double>(reference::group_norm<double>, reference::group_norm_gradient<double>, shape);
    EXPECT_LE(largest_error(found.y, expected.y), 1e-5);
    // With two values to a group 1/deviation is large, and so is what rounding makes of it.
    const double tolerance = shape.group_channels() * shape.size < 5 ? 2e-3 : 5e-5;
    EXPECT_LE(largest_error(found.dx, expected.dx), tolerance);
    // Sums of up to 1034 terms, one after the other in the scalar reference.
    EXPECT_LE(largest_error(found.products, expected.products), 5e-5);
    EXPECT_LE(largest_error(found.totals, expected.totals), 5e-5);
  }
}

TEST(GroupNorm, ReferenceGradientAgreesWithTheComplexStep) {
  for (const GroupNormShape& shape :
       {GroupNormShape{2, 4, 2, 3}, GroupNormShape{1, 3, 3, 5}, GroupNormShape{2, 3, 1, 1}}) {
    const auto expected =
        run<double>(reference::group_norm<double>, reference::group_norm_gradient<double>, shape);
    const auto w = convert<Complex>(normal_values("w", shape.channels));
    const auto b = convert<Complex>(normal_values("b", shape.channels));
    const int64_t count = shape.batch * shape.channels * shape.size;
    const auto x = convert<Complex>(normal_values("x", count, 2.0));
    const auto dy = convert<double>(normal_values("dy", count));
    const auto output = [&](const std::vector<Complex>& in, const std::vector<Complex>& weight) {
      std::vector<Complex> y(in.size()), mean(in.size()), deviation(in.size());
      reference::group_norm(shape, 1e-5, in.data(), weight.data(), b.data(), y.data(), mean.data(),
                            deviation.data());
      return y;
    };
    const auto of_input = [&](const std::vector<Complex>& in) { return output(in, w); };
    EXPECT_LE(largest_error(expected.dx, test::complex_step(of_input, x, dy)), 1e-9);
    const auto of_weight = [&](const std::vector<Complex>& weight) { return output(x, weight); };
    std::vector<double> sums(static_cast<size_t>(shape.channels));
    for (size_t i = 0; i < expected.products.size(); ++i) {
      sums[i % sums.size()] += expected.products[i];
    }
    EXPECT_LE(largest_error(sums, test::complex_step(of_weight, w, dy)), 1e-12);
  }
}

TEST(GroupNorm, ALargeMeanCostsNoPrecision) {
  const GroupNormShape shape{.batch = 1, .channels = 2, .groups = 1, .size = 32};
  std::vector<float> x(64), y(64), mean(1), deviation(1);
  const std::vector<float> ones(2, 1.0f), none(2, 0.0f);
  for (size_t i = 0; i < 64; ++i) x[i] = 100000.0f + static_cast<float>(i);
  group_norm(shape, 1e-5, x.data(), ones.data(), none.data(), y.data(), mean.data(),
             deviation.data());
  EXPECT_EQ(mean[0], 100031.5f);
  EXPECT_NEAR(deviation[0], 1.0 / std::sqrt((64.0 * 64.0 - 1.0) / 12.0), 1e-7);
}

}  // namespace
}  // namespace lacuna::group_norm_test
