#include "lacuna/framework/kernels/attention/rotary.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"

namespace lacuna::rotary_test {
namespace {

std::vector<double> definition(const std::vector<float>& x, int64_t length, int64_t features,
                               int64_t heads, int64_t d, double base) {
  std::vector<double> y(x.begin(), x.end());
  for (size_t at = 0; at < x.size(); ++at) {
    const auto row = static_cast<int64_t>(at) / features,
               column = static_cast<int64_t>(at) % features;
    if (column >= heads * d) continue;
    const int64_t i = column % d % (d / 2);
    const double angle = static_cast<double>(row % length) *
                         std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    const bool is_first = column % d < d / 2;
    const double other =
        x[is_first ? at + static_cast<size_t>(d / 2) : at - static_cast<size_t>(d / 2)];
    y[at] = x[at] * std::cos(angle) + (is_first ? -1.0 : 1.0) * other * std::sin(angle);
  }
  return y;
}

TEST(Rotary, TurnsPairsByTheirPositionAndBack) {
  for (const int64_t d : {2, 6, 16, 34}) {
    for (const int64_t length : {1, 5, 64, 70}) {
      for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
        const int64_t heads = 3, features = 4 * d;
        const Shape shape{2, length, features};
        const auto values = test::normal_values("x", shape.numel());
        const Tensor x = Tensor::from(shape, values).to(order);
        const Tensor table = rotary_table(length, d, 100.0, order);
        Tensor y = Tensor::empty(shape, order), back = Tensor::empty(shape, order);
        const RotaryShape rotary{.heads = heads, .head_features = d, .length = length};
        rotate(rotary, Rotation::Forward, table, x, y);
        const auto expected = definition(values, length, features, heads, d, 100.0);
        EXPECT_LE(test::largest_error(y.to_vector(), expected), 1e-6) << d << " " << length;
        rotate(rotary, Rotation::Back, table, y, back);
        EXPECT_LE(test::largest_error(back.to_vector(), values), 1e-6) << d << " " << length;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::rotary_test
