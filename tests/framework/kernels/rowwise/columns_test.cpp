#include "lacuna/framework/kernels/rowwise/columns.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lacuna::columns_test {
namespace {

TEST(CopyColumns, CopiesTheirRowsAndNothingElse) {
  for (const int64_t rows : {0, 1, 7, 3000}) {
    for (const int64_t columns : {0, 1, 5, 17}) {
      std::vector<float> from(static_cast<size_t>(rows * 20));
      std::iota(from.begin(), from.end(), 1.0f);
      std::vector<float> to(static_cast<size_t>(rows * 18), -1.0f);
      copy_columns({.from = from.data() + 2,
                    .from_stride = 20,
                    .to = to.data() + 1,
                    .to_stride = 18,
                    .rows = rows,
                    .columns = columns});
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < 18; ++column) {
          const bool is_copied = column >= 1 && column < 1 + columns;
          const float expected =
              is_copied ? from[static_cast<size_t>(row * 20 + 2 + column - 1)] : -1.0f;
          ASSERT_EQ(to[static_cast<size_t>(row * 18 + column)], expected)
              << rows << " × " << columns << " at " << row << ", " << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::columns_test
