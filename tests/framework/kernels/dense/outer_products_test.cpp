#include "lacuna/framework/kernels/dense/outer_products.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "throws.h"

namespace lacuna::outer_products_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random(int64_t size, const char* name) {
  const CounterRng rng(5, name);
  std::vector<float> values(static_cast<size_t>(size));
  uint64_t i = 0;
  for (float& value : values) value = 2.0f * rng.uniform(i++) - 1.0f;
  return values;
}

using Sizes = std::tuple<int64_t, int64_t, int64_t>;  // batch, rows, columns
class MaskedOuterProducts : public testing::TestWithParam<Sizes> {};

TEST_P(MaskedOuterProducts, SelectTheProductAtTheMask) {
  const auto [batch, rows, columns] = GetParam();
  const std::vector<float> dy = random(batch * rows, "dy"), x = random(batch * columns, "x");
  BitMask mask = BitMask::zeros(rows * columns);
  for (int64_t i = 0; i < mask.size(); ++i) {
    if (i % 3 != 1) mask.set(i);
  }
  for (const bool accumulate : {false, true}) {
    std::vector<float> gradient(static_cast<size_t>(rows * columns), accumulate ? 0.5f : kNaN);
    masked_outer_products(mask, batch, rows, columns, dy.data(), x.data(),
                          accumulate ? Accumulate::Yes : Accumulate::No, gradient.data());
    for (int64_t i = 0; i < mask.size(); ++i) {
      double sum = accumulate ? 0.5 : 0.0;
      for (int64_t e = 0; e < batch; ++e) {
        sum += double{dy[static_cast<size_t>(e * rows + i / columns)]} *
               x[static_cast<size_t>(e * columns + i % columns)];
      }
      ASSERT_NEAR(gradient[static_cast<size_t>(i)], i % 3 != 1 ? sum : 0.0, 1e-5)
          << "row " << i / columns << ", column " << i % columns;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MaskedOuterProducts,
                         testing::Values(Sizes{1, 1, 1}, Sizes{1, 4, 64}, Sizes{2, 7, 131},
                                         Sizes{5, 3, 17}, Sizes{3, 130, 1}, Sizes{0, 3, 5},
                                         Sizes{16, 97, 211}, Sizes{32, 301, 419}));

TEST(MaskedOuterProductsTest, NaNOutsideTheMaskDoesNotLeak) {
  const int64_t columns = 40;
  std::vector<float> x(static_cast<size_t>(columns), kNaN), gradient(x.size(), 1.0f);
  x[3] = 2.0f;
  BitMask mask = BitMask::zeros(columns);
  mask.set(3);
  const float dy = 1.5f;
  masked_outer_products(mask, 1, 1, columns, &dy, x.data(), Accumulate::No, gradient.data());
  for (size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], i == 3 ? 3.0f : 0.0f) << i;
}

TEST(MaskedOuterProductsTest, TheMaskMustFit) {
  float value = 0.0f;
  expect_throws<ShapeError>(
      [&] {
        masked_outer_products(BitMask::ones(5), 1, 2, 3, &value, &value, Accumulate::No, &value);
      },
      "a mask of 5 bits for a gradient of 2 x 3");
}

}  // namespace
}  // namespace lacuna::outer_products_test
