#include "lacuna/framework/kernels/rowwise/weighted_rows.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "framework/kernels/test_values.h"

namespace lacuna::weighted_rows_test {
namespace {

TEST(WeightedRows, AddTheRowsTimesTheirWeights) {
  for (const int64_t features : {1, 3, 16, 33, 128}) {
    const int64_t sums = 40, rows = 9;
    std::vector<int64_t> begin{0}, row;
    for (int64_t i = 0; i < sums; ++i) {  // some sums have no terms
      for (int64_t t = 0; t < i % 5; ++t) row.push_back((3 * i + 7 * t) % rows);
      begin.push_back(static_cast<int64_t>(row.size()));
    }
    const auto weights = test::normal_values("weights", static_cast<int64_t>(row.size()));
    const auto table = test::normal_values("table", rows * features);
    std::vector<double> expected(static_cast<size_t>(sums * features));
    for (int64_t i = 0; i < sums; ++i) {
      for (int64_t t = begin[static_cast<size_t>(i)]; t < begin[static_cast<size_t>(i) + 1]; ++t) {
        const auto term = static_cast<size_t>(t);
        for (int64_t f = 0; f < features; ++f) {
          expected[static_cast<size_t>(i * features + f)] +=
              static_cast<double>(weights[term]) *
              table[static_cast<size_t>(row[term] * features + f)];
        }
      }
    }
    const WeightedRows problem{.sums = sums,
                               .features = features,
                               .begin = begin.data(),
                               .rows = row.data(),
                               .weights = weights.data()};
    std::vector<float> found(expected.size(), 7.0f);
    sum_weighted_rows(problem, table.data(), Accumulate::No, found.data());
    EXPECT_LE(test::largest_error(found, expected), 1e-6) << features;
    sum_weighted_rows(problem, table.data(), Accumulate::Yes, found.data());
    for (double& value : expected) value *= 2.0;
    EXPECT_LE(test::largest_error(found, expected), 2e-6) << features;
  }
}

}  // namespace
}  // namespace lacuna::weighted_rows_test
