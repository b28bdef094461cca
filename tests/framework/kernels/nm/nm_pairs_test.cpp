#include "lacuna/framework/kernels/nm/nm_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "framework/kernels/nm/two_of_four.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/simd/processor.h"
#include "random_values.h"

namespace lacuna {
namespace {

using test::TwoOfFour;

bool takes_pairs() { return active_instruction_set() == "avx512" && spreads_by_loads(); }

// Memory that is not written stays NaN.
Tensor product(const TwoOfFour& m, const NmPairs& pairs, const Tensor& x, const float* bias) {
  const int64_t batch = x.shape().batch();
  Tensor y = Tensor::full(Shape{batch, m.form.rows}, NAN).to(Order::BatchSlabs);
  nm_product_by_pairs(m.matrix, pairs, m.values.data(),
                      x.to(Order::BatchSlabs).data(Order::BatchSlabs), batch, bias,
                      y.mutable_data(Order::BatchSlabs));
  return y.to(Order::RowMajor);
}

class NmPairsTest : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {
 protected:
  void TearDown() override { set_num_threads(1); }
};

TEST_P(NmPairsTest, GiveTheProduct) {
  const auto [batch, rows, columns] = GetParam();
  const TwoOfFour m(rows, columns);
  if (!nm_has_pairs(m.matrix)) {
    EXPECT_FALSE(takes_pairs());
    return;
  }
  const NmPairs pairs = nm_pairs(m.matrix);
  const Tensor x = random_tensor(Shape{batch, columns}, "x");
  const Tensor bias = random_tensor(Shape{rows}, "bias");
  for (const float* added : {bias.data(), static_cast<const float*>(nullptr)}) {
    const Tensor y = product(m, pairs, x, added);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t r = 0; r < rows; ++r) {
        double sum = added == nullptr ? 0.0 : double{added[r]};
        for (int64_t c = 0; c < columns; ++c) {
          sum += double{m.dense[static_cast<size_t>(r * columns + c)]} *
                 double{x.data()[b * columns + c]};
        }
        ASSERT_NEAR(y.data()[b * rows + r], sum, 1e-5 * std::sqrt(static_cast<double>(columns + 1)))
            << "example " << b << ", row " << r;
      }
    }
    set_num_threads(3);
    EXPECT_EQ(product(m, pairs, x, added).to_vector(), y.to_vector());
    set_num_threads(1);
  }
}

// Sizes around the tiles of columns (128), the blocks of rows and the widths of slabs.
INSTANTIATE_TEST_SUITE_P(Sizes, NmPairsTest,
                         testing::Values(std::tuple{1, 4, 8}, std::tuple{5, 2, 8},
                                         std::tuple{17, 128, 136}, std::tuple{33, 128, 128},
                                         std::tuple{64, 130, 512}, std::tuple{65, 1102, 264},
                                         std::tuple{130, 40, 264}, std::tuple{3, 0, 8},
                                         std::tuple{40, 98, 24}, std::tuple{3, 8, 0}));

TEST(NmPairs, ShareMoreThanHalfOfTheirColumns) {
  const TwoOfFour m(512, 256);
  if (!nm_has_pairs(m.matrix)) {
    EXPECT_FALSE(takes_pairs());
    return;
  }
  const NmPairs pairs = nm_pairs(m.matrix);
  int64_t shared = 0, count = 0;
  for (const NmPairs::Group& group : pairs.groups) {
    EXPECT_EQ(group.shared % 4, 0u);
    shared += int64_t{group.shared} * group.pairs;
    count += group.pairs;
  }
  EXPECT_EQ(count, 512 / 2 * m.form.tiles());
  EXPECT_GT(2 * shared, m.form.stored() / 2);
  EXPECT_LT(pairs.bytes(), 2 * m.form.stored());
}

TEST(NmPairs, AreNotThereForOtherMatrices) {
  EXPECT_FALSE(nm_has_pairs(TwoOfFour(3, 8).matrix)) << "a row would be left";
  EXPECT_FALSE(nm_has_pairs(TwoOfFour(2, 12).matrix)) << "a row has no multiple of four slots";
  EXPECT_FALSE(nm_has_pairs(nm_matrix({.rows = 2, .columns = 8, .pattern = PatternShape::nm(4, 8)},
                                      std::vector<int64_t>{0, 4, 8},
                                      std::vector<uint32_t>{0, 1, 2, 3, 0, 1, 2, 3})));
  EXPECT_FALSE(nm_has_pairs(nm_matrix({.rows = 2, .columns = 8}, std::vector<int64_t>{0, 1, 1},
                                      std::vector<uint32_t>{2})))
      << "slots are unused";
}

}  // namespace
}  // namespace lacuna
