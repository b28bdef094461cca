// Rows in pairs that share columns, and what reads their streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/csr/csr.hpp"
#include "lacuna/framework/kernels/csr/csr_stream.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna::csr_pairs_test {
namespace {

struct Matrix {
  Matrix(int64_t rows_, int64_t columns_, double density) : rows(rows_), columns(columns_) {
    const CounterRng rng(11, "pairs");
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        if (rng.uniform(static_cast<uint64_t>(r * columns + c)) >= density) continue;
        column.push_back(static_cast<uint32_t>(c));
      }
      row_begin.push_back(static_cast<int64_t>(column.size()));
    }
  }
  CsrStream stream() const { return csr_stream(rows, columns, row_begin, column); }
  /// In pairs whatever the processor, which takes them with AVX-512 alone.
  CsrStream pairs() const {
    CsrStream made = stream();
    internal::pair_all_rows(made, {});
    return made;
  }

  int64_t rows, columns;
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column;
};

/// Checks that each two rows of a group share the columns that it says, in ascending order, and
/// that what follows ascends too. Gives how many nonzeros share a column.
int64_t check_pairs(const CsrStream& stream) {
  int64_t in_shared = 0;
  for (const CsrGroup& group : stream.groups) {
    EXPECT_EQ(group.shared % 4, 0);
    EXPECT_LE(group.shared, group.length);
    EXPECT_TRUE(group.shared == 0 || group.rows % 2 == 0);
    in_shared += int64_t{group.shared} * group.rows;
    for (int64_t i = 0; i < group.rows; ++i) {
      const std::span<const uint16_t> all(
          stream.offsets.data() + group.first_value + i * group.length,
          static_cast<size_t>(group.length));
      const auto shared = all.first(static_cast<size_t>(group.shared));
      EXPECT_TRUE(std::ranges::is_sorted(shared));
      EXPECT_TRUE(std::ranges::is_sorted(all.subspan(shared.size())));
      EXPECT_EQ(std::set<uint16_t>(all.begin(), all.end()).size(), all.size());
      if (i % 2 == 1 && !shared.empty()) {
        EXPECT_TRUE(
            std::ranges::equal(shared, std::span(shared.data() - group.length, shared.size())));
      }
    }
  }
  return in_shared;
}

TEST(CsrPairs, OfManyNonzerosShareMoreColumnsThanChanceGives) {
  const CsrStream stream = Matrix(601, 512, 0.5).pairs();
  EXPECT_GT(check_pairs(stream), stream.nnz / 2);
  CsrStream transposed = csr_transposed(stream).stream;
  internal::pair_all_rows(transposed, {});
  EXPECT_GT(check_pairs(transposed), 0);
}

TEST(CsrPairs, AreMadeWithAvx512) {
  EXPECT_EQ(check_pairs(Matrix(601, 512, 0.5).stream()) > 0, active_instruction_set() == "avx512");
}

TEST(CsrPairs, OfFewNonzerosAreNotMade) {
  EXPECT_EQ(check_pairs(Matrix(601, 512, 0.08).stream()), 0);
}

TEST(CsrPairs, OfEqualRowsShareAllButARemainder) {
  EXPECT_EQ(check_pairs(Matrix(9, 63, 1.0).pairs()), 8 * 60);
}

TEST(CsrPairs, HaveEachNonzeroOnceInStretchesByColumn) {
  for (const double density : {0.0, 0.05, 0.3, 0.5, 0.9, 1.0}) {
    SCOPED_TRACE(density);
    const Matrix matrix(133, 300, density);
    const CsrStream stream = matrix.pairs();
    std::vector<uint32_t> found(matrix.column.size());
    std::vector<int> seen(matrix.column.size());
    std::vector<int64_t> next(matrix.row_begin.begin(), matrix.row_begin.end() - 1);
    csr_for_each_stretch(stream, [&](int64_t row, int64_t value, int64_t first, int64_t length) {
      for (int64_t v = value; v < value + length; ++v) {
        ++seen[static_cast<size_t>(v)];
        found[static_cast<size_t>(next[static_cast<size_t>(row)]++)] =
            static_cast<uint32_t>(first + stream.offsets[static_cast<size_t>(v)]);
      }
    });
    EXPECT_EQ(found, matrix.column);
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
}

}  // namespace
}  // namespace lacuna::csr_pairs_test
