#include "lacuna/framework/kernels/rowwise/embedding.hpp"

#include <gtest/gtest.h>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::embedding_test {
namespace {

using test::normal_values;

std::vector<int64_t> draw_ids(int64_t count, int64_t rows) {
  const CounterRng rng(1, "ids");
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int64_t>(rng.below(i, static_cast<uint64_t>(rows)));
  }
  return ids;
}

TEST(Embedding, GathersRowsAndAddsGradients) {
  for (const int64_t features : {1, 3, 16, 33, 100}) {
    const int64_t rows = 11, count = 40;
    const auto ids = draw_ids(count, rows);
    const EmbeddingProblem p{.ids = ids.data(), .count = count, .rows = rows, .features = features};
    const auto table = normal_values("table", rows * features);
    std::vector<float> y(static_cast<size_t>(count * features));
    gather_rows(p, table.data(), y.data());
    const auto dy = normal_values("dy", count * features);
    std::vector<double> expected(table.size());
    for (int64_t i = 0; i < count * features; ++i) {
      const auto at =
          static_cast<size_t>(ids[static_cast<size_t>(i / features)] * features + i % features);
      EXPECT_EQ(y[static_cast<size_t>(i)], table[at]);
      expected[at] += dy[static_cast<size_t>(i)];
    }
    std::vector<float> gradient(table.size(), 7.0f);
    add_rows(p, dy.data(), Accumulate::No, gradient.data());
    EXPECT_LE(test::largest_error(gradient, expected), 1e-6) << features;
    add_rows(p, dy.data(), Accumulate::Yes, gradient.data());
    for (double& value : expected) value *= 2.0;
    EXPECT_LE(test::largest_error(gradient, expected), 2e-6) << features;
  }
}

TEST(Embedding, ARowCanBePassedOver) {
  const std::vector<int64_t> ids{1, 0, 1};
  const std::vector<float> dy{1, 2, 3};
  std::vector<float> gradient{9, 9};
  add_rows({.ids = ids.data(), .count = 3, .rows = 2, .features = 1, .skipped_id = 1}, dy.data(),
           Accumulate::No, gradient.data());
  EXPECT_EQ(gradient, (std::vector<float>{2, 0}));
}

TEST(Embedding, GradientsDoNotDependOnTheNumberOfThreads) {
  const int64_t rows = 3000, count = 20000, features = 17;
  const auto ids = draw_ids(count, rows);
  const auto dy = normal_values("dy", count * features);
  const EmbeddingProblem p{.ids = ids.data(), .count = count, .rows = rows, .features = features};
  std::vector<float> one(static_cast<size_t>(rows * features)), two = one;
  const int before = num_threads();
  set_num_threads(1);
  add_rows(p, dy.data(), Accumulate::No, one.data());
  set_num_threads(2);
  internal::take_most_threads();
  add_rows(p, dy.data(), Accumulate::No, two.data());
  EXPECT_EQ(internal::take_most_threads(), 2);
  set_num_threads(before);
  EXPECT_EQ(one, two);
}

}  // namespace
}  // namespace lacuna::embedding_test
