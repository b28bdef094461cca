#include "lacuna/framework/kernels/pointwise/dropout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/dropout_reference.hpp"

namespace lacuna::dropout_test {
namespace {

using test::normal_tensor;

Tensor apply(const DropoutMask& mask, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), x.order());
  dropout(mask, x, y);
  return y;
}

DropoutMask mask_of(double p, uint64_t call = 0) {
  return {.rng = CounterRng(3, "drop", call), .p = p};
}

TEST(Dropout, AgreesWithTheReferenceForManySizesInEitherOrder) {
  for (const int64_t n : test::sizes()) {
    const Tensor x = normal_tensor("x", {5, n});
    std::vector<float> expected(static_cast<size_t>(5 * n));
    reference::dropout(mask_of(0.3), 5, n, x.to_vector().data(), expected.data());
    EXPECT_EQ(apply(mask_of(0.3), x).to_vector(), expected) << n;
    EXPECT_EQ(apply(mask_of(0.3), x.to(Order::BatchSlabs)).to_vector(), expected) << n;
  }
  const Tensor tall = normal_tensor("x", {131, 7});
  EXPECT_EQ(apply(mask_of(0.5), tall).to_vector(),
            apply(mask_of(0.5), tall.to(Order::BatchSlabs)).to_vector());
  EXPECT_EQ(apply(mask_of(0.5), Tensor::zeros({0, 4})).numel(), 0);
}

TEST(Dropout, DropsTheSameAgainByItsBits) {
  for (const auto& shape : std::vector<Shape>{
           {1, 1}, {3, 63}, {5, 64}, {2, 4099}, {7, 4100}, {130, 10}, {67, 3}, {0, 4}}) {
    for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
      DropoutMask mask = mask_of(0.4);
      mask.first_row = 5;
      const Tensor x = normal_tensor("x", shape).to(order);
      Tensor y = Tensor::empty(shape, order), again = Tensor::empty(shape, order);
      const KeptBits bits = dropout(mask, x, y);
      dropout_again(mask, bits, x, again);
      std::vector<float> expected(static_cast<size_t>(shape.numel()));
      reference::dropout(mask, shape[0], shape[1], x.to_vector().data(), expected.data());
      EXPECT_EQ(y.to_vector(), expected) << shape.to_string();
      EXPECT_EQ(again.to_vector(), expected) << shape.to_string();
    }
  }
}

// Their numbers cross 2^32.
TEST(Dropout, DrawsFarBlocks) {
  const Tensor x = Tensor::full({70, 3}, 1.0f);
  DropoutMask mask = mask_of(0.5);
  mask.first_row = (int64_t{1} << 32) - 40;
  std::vector<float> expected(210);
  reference::dropout(mask, 70, 3, x.to_vector().data(), expected.data());
  EXPECT_EQ(apply(mask, x).to_vector(), expected);
  EXPECT_EQ(apply(mask, x.to(Order::BatchSlabs)).to_vector(), expected);
}

TEST(Dropout, KeepsTheExpectation) {
  const Tensor y = apply(mask_of(0.25), Tensor::full({400, 250}, 1.0f));
  const auto values = y.to_vector();
  const auto dropped = std::ranges::count(values, 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped) / 100000.0, 0.25, 0.006);  // four standard deviations
  EXPECT_EQ(*std::ranges::max_element(values), static_cast<float>(1.0 / 0.75));
}

TEST(Dropout, PZeroKeepsAllAndCallsDiffer) {
  const Tensor x = Tensor::full({9, 33}, 1.0f);
  EXPECT_EQ(apply(mask_of(0.0), x).to_vector(), x.to_vector());
  EXPECT_NE(apply(mask_of(0.5, 0), x).to_vector(), apply(mask_of(0.5, 1), x).to_vector());
  EXPECT_EQ(reference::dropout_threshold(0x1.0p-24), 1u);
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  const Tensor x = normal_tensor("x", {300, 100});
  set_num_threads(1);
  const auto one = apply(mask_of(0.5), x).to_vector();
  set_num_threads(3);
  EXPECT_EQ(apply(mask_of(0.5), x).to_vector(), one);
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::dropout_test
