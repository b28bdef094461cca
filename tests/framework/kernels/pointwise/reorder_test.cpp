#include "lacuna/framework/kernels/pointwise/reorder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "random_values.h"

namespace lacuna::reorder_test {
namespace {

TEST(Reorder, AgreesWithTheTensorsOwnConversion) {
  for (const int64_t batch : {0, 1, 3, 4, 15, 16, 17, 63, 64, 65, 131}) {
    for (const int64_t features : {0, 1, 3, 4, 5, 15, 16, 17, 60, 64, 67, 300}) {
      const Tensor x = random_tensor(Shape{batch, features}, "x");
      const Tensor slabs = reordered(x, Order::BatchSlabs);
      const Tensor expected = x.to(Order::BatchSlabs);
      ASSERT_TRUE(std::ranges::equal(slabs.storage(), expected.storage()))
          << batch << " x " << features;
      ASSERT_EQ(reordered(slabs, Order::RowMajor).to_vector(), x.to_vector());
    }
  }
  const Tensor x = random_tensor(Shape{2, 2}, "x");
  EXPECT_TRUE(reordered(x, Order::RowMajor).shares_storage_with(x));
}

TEST(Reorder, ASingleSlabIsThatOfATensor) {
  for (const int64_t count : {1, 5, 16, 63, 64}) {
    for (const int64_t features : {1, 4, 18, 70}) {
      const Tensor x = random_tensor(Shape{count, features}, "x");
      const Tensor expected = x.to(Order::BatchSlabs);
      std::vector<float> slab(static_cast<size_t>(features * kSlabWidth), NAN);
      slab_of_rows(x.data(), count, features, slab.data());
      ASSERT_TRUE(std::ranges::equal(slab, expected.storage())) << count << " x " << features;
      std::vector<float> rows(static_cast<size_t>(x.numel()), NAN);
      rows_of_slab(slab.data(), count, features, rows.data());
      ASSERT_EQ(rows, x.to_vector());
    }
  }
}

}  // namespace
}  // namespace lacuna::reorder_test
