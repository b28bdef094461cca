// The gradient of a normalization from several gradients, written over what it is computed from:
// against separate passes.
#include <gtest/gtest.h>

#include <vector>

#include "framework/kernels/images/image_cases.h"
#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/batch_norm.hpp"

namespace lacuna::norm_gradient_test {
namespace {

struct Case {
  bool has_more, has_earlier, is_rectified, needs_g, may_write;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int i = 0; i < 32; ++i) {
    all.push_back({(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0, (i & 16) != 0});
  }
  return all;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor sum = a.clone();
  for (int64_t i = 0; i < a.numel(); ++i) sum.mutable_data()[i] += b.data()[i];
  return sum;
}

const std::vector<float> kMean = {0.1f, -0.2f, 0.3f}, kInverse = {1.5f, 0.5f, 2.0f};

NormSlopes slopes_of(size_t channel, double g, double gx) {
  return {kInverse[channel], static_cast<float>(0.01 * gx), static_cast<float>(0.01 * g)};
}

TEST(NormGradient, AddsAndOverwritesAsSeparatePassesDo) {
  const Shape shape{35, 3, 5, 7};
  const Tensor x = test::normal_tensor("x", shape), dy = test::normal_tensor("dy", shape),
               more = test::normal_tensor("more", shape),
               earlier = test::normal_tensor("earlier", shape), y = test::normal_tensor("y", shape);
  const std::vector<float> one(3, 1.0f), none(3, 0.0f);
  for (const Order order : test::kImageOrders) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(::testing::Message() << to_string(order) << c.has_more << c.has_earlier
                                        << c.is_rectified << c.needs_g << c.may_write);
      Tensor passed;
      if (c.is_rectified) {
        channel_affine(y.to(order), one, none, Tensor(), Rectify::No, &passed);
      }
      const Tensor whole = (c.has_more ? sum_of(dy, more) : dy).to(order);
      const NormGradientSums sums = norm_gradient_sums(whole, passed, x.to(order), kMean, kInverse);
      std::vector<NormSlopes> slopes;
      for (size_t i = 0; i < 3; ++i) slopes.push_back(slopes_of(i, sums.g[i], sums.gx[i]));
      Tensor g;
      Tensor dx =
          channel_affine_gradient(whole, passed, x.to(order), slopes, &g).to(Order::RowMajor);
      if (c.has_earlier) dx = sum_of(earlier, dx);

      const auto copy = [&](const Tensor& t) { return t.to(order).clone(); };
      const Tensor kept_more = copy(more), kept_earlier = copy(earlier);
      const ImageNormInputs in{.dy = copy(dy),
                               .more_dy = !c.has_more   ? Tensor()
                                          : c.may_write ? copy(more)
                                                        : kept_more,
                               .passed = passed,
                               .x = x.to(order),
                               .earlier = !c.has_earlier ? Tensor()
                                          : c.may_write  ? copy(earlier)
                                                         : kept_earlier,
                               .may_write_dy = c.may_write,
                               .needs_g = c.needs_g};
      const ImageNormGradient found = norm_gradient(in, kMean, kInverse, slopes_of);
      EXPECT_EQ(found.sums.g, sums.g);
      EXPECT_EQ(found.sums.gx, sums.gx);
      EXPECT_EQ(found.dx.to_vector(), dx.to_vector());
      EXPECT_TRUE(test::has_zero_borders(found.dx));
      EXPECT_EQ(found.g.defined(), c.needs_g);
      if (c.needs_g) {
        EXPECT_EQ(found.g.to_vector(), g.to_vector());
        EXPECT_TRUE(test::has_zero_borders(found.g));
        EXPECT_FALSE(found.g.shares_storage_with(found.dx));
      }
      EXPECT_EQ(in.x.to_vector(), x.to_vector());
      EXPECT_EQ(kept_more.to_vector(), more.to_vector());
      EXPECT_EQ(kept_earlier.to_vector(), earlier.to_vector());
      if (c.may_write) {
        EXPECT_TRUE(found.dx.shares_storage_with(in.dy) ||
                    found.dx.shares_storage_with(in.more_dy) ||
                    found.dx.shares_storage_with(in.earlier) || c.needs_g);
      } else {
        EXPECT_EQ(in.dy.to_vector(), dy.to_vector());
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::norm_gradient_test
