#include "lacuna/framework/kernels/rowwise/reduce.hpp"

#include <gmock/gmock.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/rowwise/reduce_reference.hpp"

namespace lacuna::reduce_test {
namespace {

using test::convert;
using test::largest_error;
using test::normal_tensor;

std::vector<double> expected_rows(const Tensor& x) {
  const int64_t rows = x.shape().batch(), columns = x.shape().features();
  std::vector<double> sums(static_cast<size_t>(columns));
  reference::sum_columns(convert<double>(x.to_vector()).data(), rows, columns, columns,
                         sums.data());
  return sums;
}

TEST(SumRows, AgreesWithTheReferenceForManySizes) {
  constexpr double kTolerance = 2e-5;  // 300 values near 1, added one after the other in float32
  for (const int64_t columns : test::sizes()) {
    for (const int64_t rows : {0, 1, 7, 64, 128, 129, 300}) {
      const Tensor x = normal_tensor("x", {rows, columns});
      const auto expected = expected_rows(x);
      EXPECT_LE(largest_error(sum_rows(x).to_vector(), expected), kTolerance)
          << rows << " " << columns;
      const Tensor slabs = x.to(Order::BatchSlabs);
      EXPECT_LE(largest_error(sum_rows(slabs).to_vector(), expected), kTolerance);
    }
  }
}

TEST(SumRows, TakesLeadingDimensionsTogether) {
  const Tensor x = normal_tensor("x", {3, 5, 7});
  EXPECT_EQ(sum_rows(x).shape(), (Shape{7}));
  EXPECT_EQ(sum_rows(x).to_vector(), sum_rows(x.reshape({15, 7})).to_vector());
  EXPECT_EQ(sum_rows(Tensor::scalar(2.0f)).to_vector(), std::vector<float>{2.0f});
}

TEST(SumRows, LeavesOutThePaddingOfSlabs) {
  Tensor x = Tensor::full({3, 2}, 1.0f).to(Order::BatchSlabs);
  for (float& value : x.mutable_storage()) value = 1.0f;
  EXPECT_EQ(sum_rows(x).to_vector(), (std::vector<float>{3.0f, 3.0f}));
}

TEST(SumRows, DoesNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  for (const Order order : {Order::RowMajor, Order::BatchSlabs}) {
    const Tensor x = normal_tensor("x", {1111, 601}).to(order);
    set_num_threads(1);
    const auto one = sum_rows(x).to_vector();
    set_num_threads(3);
    EXPECT_EQ(sum_rows(x).to_vector(), one);
    set_num_threads(before);
  }
}

TEST(Sum, AgreesWithTheReferenceAndTheNumberOfThreads) {
  for (const int64_t n : test::sizes()) {
    const auto x = test::normal_values("x", n);
    EXPECT_NEAR(sum(x), reference::sum(x.data(), n), 1e-5) << n;
  }
  const int before = num_threads();
  const auto x = test::normal_values("x", 100003);
  set_num_threads(1);
  const double one = sum(x);
  set_num_threads(3);
  EXPECT_EQ(sum(x), one);
  set_num_threads(before);
  EXPECT_NEAR(one, reference::sum(x.data(), 100003), 1e-3);
  EXPECT_EQ(sum(std::vector<float>(1 << 20, 1.0f)), 1 << 20);
}

}  // namespace
}  // namespace lacuna::reduce_test
