// What int8 products are made of: matrices of groups, and grids.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"
#include "throws.h"

namespace lacuna::int8_matrix_test {
namespace {

TEST(Int8Matrix, RefusesARowWhoseSumsOverflow) {
  const std::vector<int64_t> row_begin{0, 0, 70000};
  std::vector<uint32_t> column(70000);
  for (uint32_t i = 0; i < column.size(); ++i) column[i] = i;
  const std::vector<int8_t> values(70000, -127);
  expect_throws<ShapeError>([&] { int8_matrix(2, 70000, row_begin, column, values); },
                            "row 1 of an int8 weight has 70000 nonzeros");
}

TEST(Int8Matrix, CountsGroupsAndBytes) {
  const std::vector<int64_t> row_begin{0, 3, 3, 4};
  const std::vector<uint32_t> column{0, 3, 4, 9};
  const std::vector<int8_t> values{1, -2, 3, 127};
  const Int8Matrix matrix = int8_matrix(3, 10, row_begin, column, values);
  EXPECT_EQ(matrix.nnz, 4);
  EXPECT_EQ(matrix.groups, 3);
  EXPECT_EQ(matrix.row_sums, (std::vector<int32_t>{2, 0, 127}));
  EXPECT_GE(matrix.bytes(), 3 * 6);
}

// Six bytes for four weights, where float32 csr takes 24.
TEST(Int8Matrix, OfFullGroupsTakesAThirdOfFloat32Csr) {
  constexpr int64_t kRows = 256, kColumns = 512, kEvery = 10;  // one quad of ten
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t quad = row % kEvery; quad < kColumns / kInt8Group; quad += kEvery) {
      for (int64_t i = 0; i < kInt8Group; ++i) {
        column.push_back(static_cast<uint32_t>(quad * kInt8Group + i));
      }
    }
    row_begin.push_back(static_cast<int64_t>(column.size()));
  }
  const std::vector<int8_t> values(column.size(), 50);
  const CsrStream stream = csr_stream(kRows, kColumns, row_begin, column);
  const int64_t of_csr = stream.bytes() + stream.nnz * static_cast<int64_t>(sizeof(float));
  for (const internal::Int8Kernels* kernels : internal::int8_kernels()) {
    const Int8Matrix matrix = internal::int8_matrix_for(*kernels, kRows, kColumns, row_begin,
                                                        column, values, Int8Form::Groups);
    EXPECT_LE(static_cast<double>(matrix.bytes()), 0.35 * static_cast<double>(of_csr))
        << kernels->name;
  }
}

TEST(Int8Grid, SpansItsRangeAndZero) {
  EXPECT_EQ(int8_grid(0.0f, 255.0f), (Int8Grid{.scale = 1.0f, .zero = 0}));
  EXPECT_EQ(int8_grid(10.0f, 255.0f), (Int8Grid{.scale = 1.0f, .zero = 0}));
  EXPECT_EQ(int8_grid(-255.0f, -3.0f), (Int8Grid{.scale = 1.0f, .zero = 255}));
  EXPECT_EQ(int8_grid(-1.0f, 1.01f).zero, 127);
  EXPECT_EQ(int8_grid(0.0f, 0.0f), Int8Grid());
  EXPECT_EQ(int8_grid(0.0f, std::numeric_limits<float>::infinity()), Int8Grid());
}

}  // namespace
}  // namespace lacuna::int8_matrix_test
