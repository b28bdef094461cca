#include "lacuna/framework/kernels/nm/nm_columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "framework/kernels/nm/two_of_four.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "random_values.h"

namespace lacuna {
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
  if (!nm_has_columns(problem.matrix)) {
    EXPECT_NE(active_instruction_set(), "avx512");
    return;
  }
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
INSTANTIATE_TEST_SUITE_P(Sizes, NmColumnsTest,
                         testing::Values(std::tuple{1, 4, 4}, std::tuple{5, 1, 8},
                                         std::tuple{17, 127, 132}, std::tuple{33, 128, 128},
                                         std::tuple{64, 129, 516}, std::tuple{65, 300, 1028},
                                         std::tuple{130, 40, 260}, std::tuple{3, 0, 8},
                                         std::tuple{40, 97, 24}, std::tuple{3, 8, 0}));

TEST(NmColumns, AreNotThereForOtherMatrices) {
  EXPECT_FALSE(
      nm_has_columns(nm_matrix({.rows = 1, .columns = 8, .pattern = PatternShape::nm(4, 8)},
                               std::vector<int64_t>{0, 4}, std::vector<uint32_t>{0, 1, 2, 3})));
  EXPECT_FALSE(nm_has_columns(
      nm_matrix({.rows = 1, .columns = 4}, std::vector<int64_t>{0, 1}, std::vector<uint32_t>{2})))
      << "a slot is unused";
}

}  // namespace
}  // namespace lacuna
