#include "lacuna/framework/kernels/rowwise/norm_slabs.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/rowwise/norm_reference.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm_reference.hpp"

namespace lacuna {
namespace {

using test::convert;
using test::largest_error;

struct Slabs {
  Tensor y, dx, product;
};

Slabs run(const Tensor& x, const Tensor& w, const Tensor* b, const Tensor& dy) {
  const NormShape shape{x.shape()[0], x.shape()[1]};
  const Order order = Order::BatchSlabs;
  const Tensor in = x.to(order), of_dy = dy.to(order);
  Slabs s{Tensor::empty(x.shape(), order), Tensor::empty(x.shape(), order),
          Tensor::empty(x.shape(), order)};
  std::vector<float> mean(static_cast<size_t>(shape.rows + 64)), deviation = mean;
  float* centers = b == nullptr ? nullptr : mean.data();
  norm_slabs(shape, 1e-2, in.data(order), w.data(), b == nullptr ? nullptr : b->data(),
             s.y.mutable_data(order), centers, deviation.data());
  norm_slabs_gradient(shape, in.data(order), w.data(), centers, deviation.data(), of_dy.data(order),
                      s.dx.mutable_data(order), s.product.mutable_data(order));
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
      EXPECT_LE(largest_error(layer.product.to_vector(), product), 5e-6) << rows << " " << n;

      const Slabs rms = run(x, w, nullptr, dy);
      reference::rms_norm(shape, 1e-2, xd.data(), wd.data(), y.data(), deviation.data());
      reference::rms_norm_gradient(shape, xd.data(), wd.data(), deviation.data(), dyd.data(),
                                   dx.data(), product.data());
      EXPECT_LE(largest_error(rms.y.to_vector(), y), 5e-6) << rows << " " << n;
      EXPECT_LE(largest_error(rms.dx.to_vector(), dx), tolerance) << rows << " " << n;
      EXPECT_LE(largest_error(rms.product.to_vector(), product), 5e-6) << rows << " " << n;
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
}  // namespace lacuna
