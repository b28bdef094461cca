// N:M matrices from masks, and their values from dense matrices and back.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/nm/nm.hpp"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/framework/kernels/nm/nm_transpose.hpp"

namespace lacuna::nm_from_mask_test {
namespace {

NmMatrix by_positions(const NmMatrixForm& form, const BitMask& mask) {
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> columns;
  for (int64_t r = 0; r < form.rows; ++r) {
    for (int64_t c = 0; c < form.columns; ++c) {
      if (mask.test(r * form.columns + c)) columns.push_back(static_cast<uint32_t>(c));
    }
    row_begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return nm_matrix(form, row_begin, columns);
}

// Widths with one tile, several, a last one that is shorter, and rows that begin within a word.
const int64_t kGroups[] = {0, 1, 3, 8, 17, 35, 40};

TEST(NmMask, FullGroupsMakeTheMatrixOfThePositions) {
  for (const auto& [n, m] : {std::pair{2, 4},
                             {1, 4},
                             {1, 8},
                             {2, 8},
                             {4, 8},
                             {1, 16},
                             {2, 16},
                             {4, 16},
                             {3, 8},
                             {2, 6},
                             {4, 4}}) {
    for (const int64_t rows : {0, 1, 7, 24}) {
      for (const int64_t groups : kGroups) {
        const NmMatrixForm form{
            .rows = rows, .columns = groups * m, .pattern = PatternShape::nm(n, m)};
        const auto w = test::normal_values("w", rows * form.columns);
        BitMask mask = nm_select(form, w);
        const auto made = nm_matrix_of_full(form, mask);
        if (!made) continue;  // a format without code
        const NmMatrix expected = by_positions(form, mask);
        EXPECT_EQ(made->codes, expected.codes) << n << ":" << m << ", " << rows << " × " << groups;
        EXPECT_TRUE(expected.unused == made->unused || form.slots() != n);
        if (mask.count() == 0) continue;
        int64_t last = 0;
        mask.for_each([&](int64_t i) { last = i; });
        mask.reset(last);
        EXPECT_FALSE(nm_matrix_of_full(form, mask).has_value());
      }
    }
  }
  const NmMatrixForm form{.rows = 2, .columns = 8, .pattern = PatternShape::nm(2, 4)};
  BitMask three = nm_select(form, std::vector<float>(16, 1.0f));
  three.set(2);
  EXPECT_FALSE(nm_matrix_of_full(form, three).has_value());
  three.reset(4);  // as many in all
  EXPECT_FALSE(nm_matrix_of_full(form, three).has_value());
}

TEST(NmMask, ColumnsFitWhereFourRowsHaveTwoAtMost) {
  for (const int64_t columns : {4, 60, 132, 256, 300}) {
    const NmMatrixForm form{.rows = 12, .columns = columns, .pattern = PatternShape::nm(2, 4)};
    const auto w = test::normal_values("w", 12 * columns);
    BitMask mask = transposable_select(12, columns, w);
    EXPECT_TRUE(nm_columns_fit(form, mask));
    for (int64_t row = 4; row < 8; ++row) {  // a third one in the last column
      if (mask.test(row * columns + columns - 1)) continue;
      mask.set(row * columns + columns - 1);
      break;
    }
    EXPECT_FALSE(nm_columns_fit(form, mask));
  }
}

TEST(NmDense, GoesBothWaysForEveryFormat) {
  for (const auto& [n, m] : {std::pair{2, 4},
                             {1, 4},
                             {3, 4},
                             {2, 3},
                             {1, 2},
                             {4, 8},
                             {2, 8},
                             {8, 16},
                             {5, 16},
                             {1, 1}}) {
    for (const int64_t rows : {0, 1, 7}) {
      for (const int64_t groups : kGroups) {
        for (const bool full : {true, false}) {
          const NmMatrixForm form{
              .rows = rows, .columns = groups * m, .pattern = PatternShape::nm(n, m)};
          const auto w = test::normal_values("w", rows * form.columns);
          BitMask mask = nm_select(form, w);
          const CounterRng rng(1, "drop");
          for (int64_t i = 0; i < mask.size() && !full; ++i) {
            if (rng.uniform(static_cast<uint64_t>(i)) < 0.3f) mask.reset(i);
          }
          const NmMatrix matrix = by_positions(form, mask);
          std::vector<float> values(static_cast<size_t>(form.stored()), NAN), dense(w.size(), NAN);
          values.reserve(values.size() + 4);
          nm_from_dense(matrix, w.data(), values.data());
          for (const uint32_t slot : matrix.unused) EXPECT_EQ(values[slot], 0.0f);
          nm_for_each(matrix, [&](int64_t slot, int64_t row, int64_t column) {
            ASSERT_EQ(values[static_cast<size_t>(slot)],
                      w[static_cast<size_t>(row * form.columns + column)]);
          });
          nm_to_dense(matrix, values.data(), dense.data());
          for (size_t i = 0; i < w.size(); ++i) {
            ASSERT_EQ(dense[i], mask.test(static_cast<int64_t>(i)) ? w[i] : 0.0f)
                << n << ":" << m << ", " << rows << " × " << groups << ", " << i;
          }
        }
      }
    }
  }
}

TEST(NmTransposeTest, IsTheTransposedMatrixFullOrNot) {
  for (const int64_t rows : {4, 8, 12, 132, 260}) {
    for (const int64_t columns : {4, 60, 132}) {
      for (const bool full : {true, false}) {
        const NmMatrixForm form{
            .rows = rows, .columns = columns, .pattern = PatternShape::nm(2, 4)};
        const auto w = test::normal_values("w", rows * columns);
        BitMask mask = transposable_select(rows, columns, w);
        for (int64_t i = 0; i < mask.size() && !full; i += 7) mask.reset(i);
        const NmMatrix matrix = by_positions(form, mask);
        const NmTranspose turned = nm_transpose(matrix);
        BitMask turned_mask = BitMask::zeros(mask.size());
        mask.for_each([&](int64_t i) { turned_mask.set(i % columns * rows + i / columns); });
        const NmMatrix expected = by_positions(turned.matrix.form, turned_mask);
        EXPECT_EQ(turned.matrix.codes, expected.codes) << rows << " × " << columns;
        EXPECT_EQ(turned.matrix.unused, expected.unused);
        std::vector<float> values(static_cast<size_t>(form.stored())), copy(values.size());
        nm_from_dense(matrix, w.data(), values.data());
        nm_transpose_values(matrix, turned, values.data(), copy.data());
        nm_for_each(turned.matrix, [&](int64_t slot, int64_t row, int64_t column) {
          ASSERT_EQ(copy[static_cast<size_t>(slot)],
                    w[static_cast<size_t>(column * columns + row)]);
        });
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::nm_from_mask_test
