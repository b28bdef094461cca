#include "lacuna/framework/kernels/rowwise/norm_slabs.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/kernels/rowwise/norm_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"

namespace lacuna::norm_slabs_test {
namespace {

using test::convert;
using test::largest_error;

struct Slabs {
  Tensor y, dx, products, totals;
};

// With `added`, which must be in slabs, it is added to dx.
Slabs run(const Tensor& x, const Tensor& w, const Tensor* b, const Tensor& dy,
          const Tensor& added = Tensor()) {
  const NormShape shape{x.shape()[0], x.shape()[1]};
  const Order order = Order::BatchSlabs;
  const Tensor in = x.to(order), of_dy = dy.to(order);
  const Shape sums{norm_row_blocks(shape.rows), shape.features};
  Slabs s{Tensor::empty(x.shape(), order), Tensor::empty(x.shape(), order), Tensor::empty(sums),
          Tensor::empty(sums)};
  std::vector<float> mean(static_cast<size_t>(shape.rows + 64)), deviation = mean;
  float* centers = b == nullptr ? nullptr : mean.data();
  norm_slabs(shape, 1e-2, in.data(order), w.data(), b == nullptr ? nullptr : b->data(),
             s.y.mutable_data(order), centers, deviation.data());
  norm_slabs_gradient(shape, {.x = in.data(order),
                              .weight = w.data(),
                              .mean = centers,
                              .inverse_deviation = deviation.data(),
                              .dy = of_dy.data(order),
                              .added = added.defined() ? added.data(order) : nullptr,
                              .dx = s.dx.mutable_data(order),
                              .products = s.products.mutable_data(),
                              .totals = b == nullptr ? nullptr : s.totals.mutable_data()});
  return s;
}

TEST(NormSlabs, AgreeWithTheReferencesOnRows) {
  for (const int64_t rows : {1, 63, 64, 65, 130}) {
    for (const int64_t n : {1, 2, 7, 64, 65, 300}) {
      const Tensor x = test::normal_tensor("x", {rows, n}, 2.0), w = test::normal_tensor("w", {n}),
                   b = test::normal_tensor("b", {n}), dy = test::normal_tensor("dy", {rows, n});
      const auto xd = convert<double>(x.to_vector()), wd = convert<double>(w.to_vector()),
                 bd = convert<double>(b.to_vector()), dyd = convert<double>(dy.to_vector());
      std::vector<double> y(xd.size()), dx = y, product = y, mean(static_cast<size_t>(rows)),
                                        deviation = mean;
      const NormShape shape{rows, n};
      const double tolerance = n < 3 ? 2e-5 : 5e-6;

      const Slabs layer = run(x, w, &b, dy);
      reference::layer_norm(shape, 1e-2, xd.data(), wd.data(), bd.data(), y.data(), mean.data(),
                            deviation.data());
      reference::layer_norm_gradient(shape, xd.data(), wd.data(), mean.data(), deviation.data(),
                                     dyd.data(), dx.data(), product.data());
      EXPECT_LE(largest_error(layer.y.to_vector(), y), 5e-6) << rows << " " << n;
      EXPECT_LE(largest_error(layer.dx.to_vector(), dx), tolerance) << rows << " " << n;
      EXPECT_LE(largest_error(layer.products.to_vector(), test::block_sums(product, rows, n)), 3e-5)
          << rows << " " << n;
      EXPECT_LE(largest_error(layer.totals.to_vector(), test::block_sums(dyd, rows, n)), 1e-5)
          << rows << " " << n;

      const Slabs rms = run(x, w, nullptr, dy);
      reference::rms_norm(shape, 1e-2, xd.data(), wd.data(), y.data(), deviation.data());
      reference::rms_norm_gradient(shape, xd.data(), wd.data(), deviation.data(), dyd.data(),
                                   dx.data(), product.data());
      EXPECT_LE(largest_error(rms.y.to_vector(), y), 5e-6) << rows << " " << n;
      EXPECT_LE(largest_error(rms.dx.to_vector(), dx), tolerance) << rows << " " << n;
      EXPECT_LE(largest_error(rms.products.to_vector(), test::block_sums(product, rows, n)), 3e-5)
          << rows << " " << n;
    }
  }
}

TEST(NormSlabs, AnotherGradientIsAddedToTheInputs) {
  for (const int64_t rows : {5, 64, 70}) {
    const Tensor x = test::normal_tensor("x", {rows, 9}), w = test::normal_tensor("w", {9}),
                 b = test::normal_tensor("b", {9}), dy = test::normal_tensor("dy", {rows, 9}),
                 added = test::normal_tensor("added", {rows, 9});
    for (const Tensor* bias : {&b, static_cast<const Tensor*>(nullptr)}) {
      const Slabs alone = run(x, w, bias, dy),
                  sum = run(x, w, bias, dy, added.to(Order::BatchSlabs));
      EXPECT_LE(largest_error(sum.dx.to_vector(), test::plus(convert<double>(alone.dx.to_vector()),
                                                             convert<double>(added.to_vector()))),
                1e-6);
      EXPECT_EQ(sum.products.to_vector(), alone.products.to_vector());
    }
  }
}

TEST(NormSlabs, WhatIsInThePaddingDoesNotCount) {
  const Tensor x = test::normal_tensor("x", {5, 7}), w = test::normal_tensor("w", {7}),
               b = test::normal_tensor("b", {7}), dy = test::normal_tensor("dy", {5, 7});
  const Slabs expected = run(x, w, &b, dy);
  Tensor wild_x = x.to(Order::BatchSlabs), wild_dy = dy.to(Order::BatchSlabs);
  for (size_t i = 0; i < wild_x.storage().size(); ++i) {
    if (i % 64 >= 5) wild_x.mutable_storage()[i] = wild_dy.mutable_storage()[i] = std::nanf("");
  }
  const Slabs found = run(wild_x, w, &b, wild_dy);
  EXPECT_EQ(found.y.to_vector(), expected.y.to_vector());
  EXPECT_EQ(found.dx.to_vector(), expected.dx.to_vector());
  EXPECT_EQ(found.products.to_vector(), expected.products.to_vector());
  EXPECT_EQ(found.totals.to_vector(), expected.totals.to_vector());
}

TEST(NormSlabs, OfASumAreThoseOfTheSum) {
  constexpr Order kOrder = Order::BatchSlabs;
  for (const int64_t n : {1, 64, 65, 300}) {
    const NormShape shape{70, n};
    const Tensor a = test::normal_tensor("a", {70, n}).to(kOrder),
                 b = test::normal_tensor("b", {70, n}).to(kOrder),
                 w = test::normal_tensor("w", {n}), bias = test::normal_tensor("bias", {n});
    const std::vector<float> values = test::plus(a.to_vector(), b.to_vector());
    const Tensor sum = Tensor::from({70, n}, values).to(kOrder);
    for (const bool is_centered : {true, false}) {
      Tensor y = Tensor::empty({70, n}, kOrder), found = Tensor::empty({70, n}, kOrder),
             made = Tensor::empty({70, n}, kOrder);
      std::vector<float> mean(128), deviation(128), found_mean(128), found_deviation(128);
      const float* shift = is_centered ? bias.data() : nullptr;
      norm_slabs(shape, 1e-2, sum.data(kOrder), w.data(), shift, y.mutable_data(kOrder),
                 is_centered ? mean.data() : nullptr, deviation.data());
      norm_slabs_of_sum(shape, 1e-2, a.data(kOrder), b.data(kOrder), w.data(), shift,
                        made.mutable_data(kOrder), found.mutable_data(kOrder),
                        is_centered ? found_mean.data() : nullptr, found_deviation.data());
      EXPECT_EQ(made.to_vector(), values);
      EXPECT_EQ(found.to_vector(), y.to_vector());
      EXPECT_EQ(found_mean, mean);
      EXPECT_EQ(found_deviation, deviation);
    }
  }
}

TEST(NormSlabs, ThePaddingOfTheLastSlabIsZero) {
  const Tensor b = Tensor::full({3}, 1.0f);
  const Slabs s = run(test::normal_tensor("x", {5, 3}), Tensor::full({3}, 1.0f), &b,
                      test::normal_tensor("dy", {5, 3}));
  for (const Tensor& tensor : {s.y, s.dx}) {
    for (size_t i = 0; i < tensor.storage().size(); ++i) {
      if (i % 64 >= 5) {
        EXPECT_EQ(tensor.storage()[i], 0.0f);
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::norm_slabs_test
