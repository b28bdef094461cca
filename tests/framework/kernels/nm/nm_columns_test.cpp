#include "lacuna/framework/kernels/nm/nm_columns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "framework/kernels/nm/two_of_four.h"
#include "instruction_sets/avx512.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "random_values.h"

namespace lacuna::nm_columns_test {
namespace {

struct Problem : test::TwoOfFour {
  using TwoOfFour::TwoOfFour;

  // Batch slabs; memory that is not written stays NaN.
  Tensor input_gradient(const Tensor& dy) const {
    const NmColumns index = nm_columns(matrix);
    std::vector<float> by_columns(static_cast<size_t>(form.stored()));
    nm_values_by_columns(form, index, values.data(), by_columns.data());
    const int64_t batch = dy.shape().batch();
    Tensor dx = Tensor::full(Shape{batch, form.columns}, NAN).to(Order::BatchSlabs);
    nm_input_gradient(form, index, by_columns.data(),
                      dy.to(Order::BatchSlabs).data(Order::BatchSlabs), batch,
                      dx.mutable_data(Order::BatchSlabs));
    return dx.to(Order::RowMajor);
  }
};

class NmColumnsTest : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {
 protected:
  void TearDown() override { set_num_threads(1); }
};

TEST_P(NmColumnsTest, GivesTheInputGradient) {
  const auto [batch, rows, columns] = GetParam();
  const Problem problem(rows, columns);
  ASSERT_TRUE(nm_has_columns(problem.matrix));
  const Tensor dy = random_tensor(Shape{batch, rows}, "dy");
  const Tensor dx = problem.input_gradient(dy);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0.0;
      for (int64_t r = 0; r < rows; ++r) {
        sum += double{problem.dense[static_cast<size_t>(r * columns + c)]} *
               double{dy.data()[b * rows + r]};
      }
      ASSERT_NEAR(dx.data()[b * columns + c], sum, 1e-5 * std::sqrt(static_cast<double>(rows)))
          << "example " << b << ", column " << c;
    }
  }
  set_num_threads(3);
  EXPECT_EQ(problem.input_gradient(dy).to_vector(), dx.to_vector());
}

// Sizes around the tiles of rows (128 or 96), the form's tiles of columns (128), blocks of columns
// (512) and the widths that kernels are made for.
using Sizes = std::tuple<int64_t, int64_t, int64_t>;
const std::vector<Sizes> kSizes = {{1, 4, 4},      {5, 1, 8},       {17, 127, 132}, {33, 128, 128},
                                   {64, 129, 516}, {65, 300, 1028}, {130, 40, 260}, {3, 0, 8},
                                   {40, 97, 24},   {3, 8, 0}};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NmColumnsTest);
INSTANTIATE_TEST_SUITE_P(Sizes, NmColumnsTest, test::with_avx512(kSizes));

// On every machine: the kernel reads nothing but these.
TEST(NmColumns, HoldEachNonzeroOnce) {
  for (const auto& [batch, rows, columns] : kSizes) {
    const Problem problem(rows, columns);
    const NmColumns index = nm_columns(problem.matrix);
    std::vector<float> values(static_cast<size_t>(problem.form.stored()));
    nm_values_by_columns(problem.form, index, problem.values.data(), values.data());
    std::vector<float> dense(problem.dense.size());
    size_t next = 0;
    for (int64_t t = 0; t < index.tiles; ++t) {
      for (int64_t g = 0; g < columns / 4; ++g) {
        for (size_t pair = 0; pair < NmColumns::kPairs.size(); ++pair) {
          const auto count_at = static_cast<size_t>(t * (columns / 4) + g) * 6 + pair;
          for (int i = 0; i < index.counts[count_at]; ++i, ++next) {
            const int64_t row = t * index.tile_rows + index.rows[next];
            for (size_t of_two = 0; of_two < 2; ++of_two) {
              const int64_t column = g * 4 + NmColumns::kPairs[pair][of_two];
              dense.at(static_cast<size_t>(row * columns + column)) += values[2 * next + of_two];
            }
          }
        }
      }
    }
    EXPECT_EQ(next, index.rows.size());
    EXPECT_EQ(dense, problem.dense) << rows << "x" << columns;
  }
}

TEST(NmColumns, AreThereWithAvx512) {
  EXPECT_EQ(nm_has_columns(Problem(4, 8).matrix), active_instruction_set() == "avx512");
}

TEST(NmColumns, AreNotThereForOtherMatrices) {
  EXPECT_FALSE(
      nm_has_columns(nm_matrix({.rows = 1, .columns = 8, .pattern = PatternShape::nm(4, 8)},
                               std::vector<int64_t>{0, 4}, std::vector<uint32_t>{0, 1, 2, 3})));
  EXPECT_FALSE(nm_has_columns(
      nm_matrix({.rows = 1, .columns = 4}, std::vector<int64_t>{0, 1}, std::vector<uint32_t>{2})))
      << "a slot is unused";
}

}  // namespace
}  // namespace lacuna::nm_columns_test
