#include "lacuna/framework/kernels/dense/gemm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "random_values.h"

namespace lacuna::gemm_test {
namespace {

struct Operands {
  std::vector<float> a, b, c, bias;
};

Operands operands(int64_t m, int64_t n, int64_t k) {
  return {random_values(m * k, "a"), random_values(k * n, "b"), random_values(m * n, "c"),
          random_values(n, "bias")};
}

double expected(const GemmProblem& p, const std::vector<float>& c, int64_t i, int64_t j) {
  double sum = p.beta * c[static_cast<size_t>(i * p.n + j)];
  for (int64_t l = 0; l < p.k; ++l) {
    const float a = p.a[p.transpose_a == Transpose::Yes ? l * p.m + i : i * p.k + l];
    const float b = p.b[p.transpose_b == Transpose::Yes ? j * p.k + l : l * p.n + j];
    sum += static_cast<double>(a) * b;
  }
  return sum + (p.bias != nullptr ? p.bias[j] : 0.0f);
}

void check(int64_t m, int64_t n, int64_t k, Transpose ta, Transpose tb, float beta, bool bias) {
  const Operands o = operands(m, n, k);
  std::vector<float> c = o.c;
  if (beta == 0.0f) std::fill(c.begin(), c.end(), std::nanf(""));  // must not be read
  const std::vector<float> before = beta == 0.0f ? std::vector<float>(c.size()) : c;
  const GemmProblem p{m,          n,          k,        ta,   tb,
                      o.a.data(), o.b.data(), c.data(), beta, bias ? o.bias.data() : nullptr};
  gemm(p);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      // A float32 sum of k terms below 1 is off by k roundings at most.
      ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], expected(p, before, i, j),
                  1e-6 * static_cast<double>(k + 2))
          << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
  }
}

TEST(Gemm, AllTransposesAndSizes) {
  for (const Transpose ta : {Transpose::No, Transpose::Yes}) {
    for (const Transpose tb : {Transpose::No, Transpose::Yes}) {
      for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
               {1, 1, 1}, {1, 17, 5}, {13, 1, 7}, {7, 11, 1}, {17, 19, 23}, {64, 48, 65}}) {
        check(m, n, k, ta, tb, 0.0f, false);
        check(m, n, k, ta, tb, 1.0f, false);
        check(m, n, k, ta, tb, 0.0f, true);
        check(m, n, k, ta, tb, 1.0f, true);
      }
    }
  }
}

TEST(Gemm, SizesThatAreCutIntoBlocks) {
  check(131, 307, 101, Transpose::No, Transpose::Yes, 0.0f, true);
  check(307, 131, 103, Transpose::Yes, Transpose::No, 1.0f, false);
  // Few, where sgemm packs the operands of such; where it does not, rows of 2 KiB are spread.
  check(1301, 607, 17, Transpose::Yes, Transpose::No, 0.0f, true);
  check(512, 70, 129, Transpose::Yes, Transpose::No, 1.0f, false);
  check(1024, 301, 65, Transpose::Yes, Transpose::No, 0.0f, false);
}

TEST(Gemm, EmptySumLeavesBetaCAndBias) {
  check(3, 5, 0, Transpose::No, Transpose::No, 0.0f, true);
  check(3, 5, 0, Transpose::No, Transpose::No, 1.0f, false);
}

TEST(Gemm, EmptyOutputDoesNothing) {
  gemm({.m = 0, .n = 3, .k = 2});
  gemm({.m = 3, .n = 0, .k = 2});
}

TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  const int64_t m = 128, n = 384, k = 256;  // 25 MFLOP: several blocks
  const Operands o = operands(m, n, k);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    std::vector<float> c(static_cast<size_t>(m * n));
    gemm({.m = m,
          .n = n,
          .k = k,
          .transpose_b = Transpose::Yes,
          .a = o.a.data(),
          .b = o.b.data(),
          .c = c.data(),
          .bias = o.bias.data()});
    results.push_back(c);
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// As the build says: kernels_without_onednn_tests holds these same tests on Eigen.
TEST(Gemm, NamesItsProvider) {
  EXPECT_THAT(dense_provider(), testing::StartsWith(LACUNA_DENSE_PROVIDER));
}

}  // namespace
}  // namespace lacuna::gemm_test
