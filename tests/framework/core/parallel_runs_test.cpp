#include "lacuna/framework/core/parallel_runs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace lacuna::parallel_runs_test {
namespace {

TEST(ParallelRuns, EachBlockIsRunOnce) {
  const int before = num_threads();
  for (const int threads : {1, 2, 7}) {
    set_num_threads(threads);
    for (const int64_t blocks : {0, 1, 2, 5, 130, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(blocks));
      parallel_runs(blocks, [&](int64_t block) { ++seen[static_cast<size_t>(block)]; });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
  set_num_threads(before);
}

TEST(ParallelRuns, BecomeShorter) {
  EXPECT_EQ(internal::run_begins(0, 3), (std::vector<int64_t>{0}));
  EXPECT_EQ(internal::run_begins(50, 1), (std::vector<int64_t>{0, 50}));
  EXPECT_EQ(internal::run_begins(12, 2), (std::vector<int64_t>{0, 3, 5, 6, 7, 8, 9, 10, 11, 12}));
  const std::vector<int64_t> begins = internal::run_begins(1000, 4);
  for (size_t i = 2; i < begins.size(); ++i) {
    EXPECT_LE(begins[i] - begins[i - 1], begins[i - 1] - begins[i - 2]);
  }
}

TEST(ParallelRuns, AnExceptionIsRethrown) {
  EXPECT_THROW(parallel_runs(9,
                             [](int64_t block) {
                               if (block == 4) throw std::runtime_error("four");
                             }),
               std::runtime_error);
}

}  // namespace
}  // namespace lacuna::parallel_runs_test
