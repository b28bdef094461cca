#include "lacuna/framework/kernels/nm/nm_pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "framework/kernels/nm/two_of_four.h"
#include "instruction_sets/avx512.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/simd/processor.hpp"
#include "random_values.h"

namespace lacuna::nm_pairs_test {
namespace {

using test::TwoOfFour;

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
using Sizes = std::tuple<int64_t, int64_t, int64_t>;
const std::vector<Sizes> kSizes = {{1, 4, 8},      {5, 2, 8},       {17, 128, 136}, {33, 128, 128},
                                   {64, 130, 512}, {65, 1102, 264}, {130, 40, 264}, {3, 0, 8},
                                   {40, 98, 24},   {3, 8, 0}};
// By AMD's processors too, which do not choose this product.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NmPairsTest);
INSTANTIATE_TEST_SUITE_P(Sizes, NmPairsTest, test::with_avx512(kSizes));

// Adds what one row of a pair has in four steps to its dense row.
void add_four(const TwoOfFour& m, const NmTile& tile, uint32_t row, const uint8_t* columns,
              const uint8_t* slots, std::vector<float>& dense) {
  for (int i = 0; i < 4; ++i) {
    const int64_t column = tile.first_column + columns[i];
    dense.at(static_cast<size_t>(row * m.form.columns + column)) +=
        m.values.data()[tile.first_slot + row * tile.slots + slots[i]];
  }
}

// On every machine: the kernel reads nothing but these.
TEST(NmPairs, HoldEachNonzeroOnce) {
  for (const auto& [batch, rows, columns] : kSizes) {
    const TwoOfFour m(rows, columns);
    const NmPairs pairs = nm_pairs(m.matrix);
    std::vector<float> dense(m.dense.size());
    const uint8_t* step = pairs.steps.data();
    const uint32_t* row = pairs.rows.data();
    for (size_t part = 0; part + 1 < pairs.parts.size(); ++part) {
      const NmTile tile = m.form.tile(static_cast<int64_t>(part) % m.form.tiles());
      for (int64_t g = pairs.parts[part].first_group; g < pairs.parts[part + 1].first_group; ++g) {
        const NmPairs::Group group = pairs.groups[static_cast<size_t>(g)];
        for (uint32_t p = 0; p < group.pairs; ++p, row += 2) {
          for (int64_t k = 0; k < group.shared; k += 4, step += 12) {
            add_four(m, tile, row[0], step, step + 4, dense);
            add_four(m, tile, row[1], step, step + 8, dense);
          }
          for (int64_t k = group.shared; k < tile.slots; k += 4, step += 16) {
            add_four(m, tile, row[0], step, step + 4, dense);
            add_four(m, tile, row[1], step + 8, step + 12, dense);
          }
        }
      }
    }
    EXPECT_EQ(step, pairs.steps.data() + pairs.steps.size());
    EXPECT_EQ(dense, m.dense) << rows << "x" << columns;
  }
}

TEST(NmPairs, ShareMoreThanHalfOfTheirColumns) {
  const TwoOfFour m(512, 256);
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

TEST(NmPairs, AreThereWhereTwoVectorsAreLoadedInACycle) {
  EXPECT_EQ(nm_has_pairs(TwoOfFour(4, 8).matrix),
            active_instruction_set() == "avx512" && spreads_by_loads());
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
}  // namespace lacuna::nm_pairs_test
