#include "lacuna/framework/kernels/dense/cholesky.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/double_product.hpp"
#include "random_values.h"

namespace lacuna::cholesky_test {
namespace {

using Matrix = std::vector<double>;

Matrix random_matrix(int64_t count, const std::string& name) {
  const std::vector<float> values = random_values(count, name);
  return Matrix(values.begin(), values.end());
}

// X·Xᵀ + I of a random square X: well conditioned enough to compare.
Matrix positive_definite(int64_t n) {
  const Matrix x = random_matrix(n * n, "x");
  Matrix a(static_cast<size_t>(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = i == j ? static_cast<double>(n) / 4.0 : 0.0;
      for (int64_t k = 0; k < n; ++k) sum += x[i * n + k] * x[j * n + k];
      a[i * n + j] = sum;
    }
  }
  return a;
}

// With zeros above the diagonal.
Matrix lower_part(int64_t n, const Matrix& a) {
  Matrix lower(a.size(), 0.0);
  for (int64_t i = 0; i < n; ++i) std::copy_n(a.begin() + i * n, i + 1, lower.begin() + i * n);
  return lower;
}

TEST(DoubleProduct, AgreesWithItsDefinitionForOddSizesAndStrides) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                {3, 5, 7},
                                {64, 64, 64},
                                {259, 263, 131},
                                {5, 70, 300},
                                {4, 4, 0},
                                {0, 3, 2}}) {
    for (const Transpose ta : {Transpose::No, Transpose::Yes}) {
      for (const Transpose tb : {Transpose::No, Transpose::Yes}) {
        const bool at = ta == Transpose::Yes, bt = tb == Transpose::Yes;
        const int64_t lda = (at ? m : k) + 2, ldb = (bt ? k : n) + 3, ldc = n + 1;
        const Matrix a = random_matrix((at ? k : m) * lda, "a");
        const Matrix b = random_matrix((bt ? n : k) * ldb, "b");
        Matrix c = random_matrix(m * ldc, "c");
        const Matrix before = c;
        add_product({.m = m,
                     .n = n,
                     .k = k,
                     .transpose_a = ta,
                     .transpose_b = tb,
                     .alpha = -0.5,
                     .a = a.data(),
                     .b = b.data(),
                     .c = c.data(),
                     .lda = lda,
                     .ldb = ldb,
                     .ldc = ldc});
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < ldc; ++j) {
            double expected = before[i * ldc + j];
            for (int64_t l = 0; j < n && l < k; ++l) {
              expected -=
                  0.5 * a[at ? l * lda + i : i * lda + l] * b[bt ? j * ldb + l : l * ldb + j];
            }
            ASSERT_NEAR(c[i * ldc + j], expected, 1e-12) << m << " " << n << " " << k;
          }
        }
      }
    }
  }
}

TEST(Cholesky, FactorsInvertsAndSolves) {
  for (const int64_t n : {1, 2, 63, 64, 65, 200, 331}) {
    const Matrix a = positive_definite(n);
    Matrix factor = a;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) factor[i * n + j] = -7.0;  // must not be read or written
    }
    ASSERT_EQ(cholesky(n, factor.data()), n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int64_t l = 0; l <= std::min(i, j); ++l) sum += factor[i * n + l] * factor[j * n + l];
        ASSERT_NEAR(sum, a[i * n + j], 1e-11 * static_cast<double>(n)) << n;
        if (j > i) {
          ASSERT_EQ(factor[i * n + j], -7.0);
        }
      }
    }

    const Matrix x = random_matrix(n, "solution");
    Matrix b(x.size(), 0.0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) b[i] += a[i * n + j] * x[j];
    }
    solve_factored(n, factor.data(), b.data());
    for (size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(b[i], x[i], 1e-9) << n;

    Matrix inverse = lower_part(n, factor);
    invert_lower(n, inverse.data());
    square_lower(n, inverse.data());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int64_t l = 0; l < n; ++l) {
          sum += inverse[std::max(i, l) * n + std::min(i, l)] * a[l * n + j];
        }
        ASSERT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-9) << n << ": " << i << ", " << j;
      }
    }
  }
}

TEST(Cholesky, NamesTheFirstPivotThatFails) {
  const int64_t n = 130;
  Matrix a = positive_definite(n);
  // Row and column 100 become those of 7: singular but for rounding.
  for (int64_t i = 0; i < n; ++i) a[100 * n + i] = a[7 * n + i];
  for (int64_t i = 0; i < n; ++i) a[i * n + 100] = a[i * n + 7];
  a[100 * n + 100] = a[7 * n + 7];
  EXPECT_EQ(cholesky(n, Matrix(a).data()), 100);
  a[3 * n + 3] = -1.0;
  EXPECT_EQ(cholesky(n, Matrix(a).data()), 3);
  a[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(cholesky(n, Matrix(a).data()), 0);
  EXPECT_EQ(cholesky(0, nullptr), 0);
}

TEST(Cholesky, DoesNotDependOnTheNumberOfThreads) {
  const int64_t n = 600;
  const Matrix a = positive_definite(n);
  const int before = num_threads();
  std::vector<Matrix> results;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Matrix factor = lower_part(n, a);
    ASSERT_EQ(cholesky(n, factor.data()), n);
    invert_lower(n, factor.data());
    square_lower(n, factor.data());
    results.push_back(factor);
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace lacuna::cholesky_test
