#include "lacuna/framework/core/parallel.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::parallel_test {
namespace {

class Parallel : public testing::TestWithParam<int> {
 protected:
  Parallel() : saved_(num_threads()) { set_num_threads(GetParam()); }
  ~Parallel() override { set_num_threads(saved_); }

 private:
  int saved_;
};
INSTANTIATE_TEST_SUITE_P(Threads, Parallel, testing::Values(1, 2, 5, 200));

TEST_P(Parallel, RunsEachBlockOnce) {
  for (const int64_t blocks : {0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(blocks));
    parallel_blocks(blocks, [&](int64_t block) { ++runs[static_cast<size_t>(block)]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST_P(Parallel, RangesCoverTheCountWhateverTheGrain) {
  for (const int64_t count : {0, 1, 15, 16, 17, 97}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    parallel_for(count, 16, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 16, 0);
      EXPECT_LE(end - begin, 16);
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (const auto& times : seen) EXPECT_EQ(times, 1);
  }
}

TEST_P(Parallel, SumsOfBlocksDoNotDependOnTheThreads) {
  std::vector<float> partial(50);
  parallel_for(50 * 37, 37, [&](int64_t begin, int64_t end) {
    float sum = 0.0f;
    for (int64_t i = begin; i < end; ++i) sum += 1.0f / static_cast<float>(i + 1);
    partial[static_cast<size_t>(begin / 37)] = sum;
  });
  const float total = std::accumulate(partial.begin(), partial.end(), 0.0f);
  static const float expected = total;  // of the first number of threads
  EXPECT_EQ(total, expected);
}

TEST_P(Parallel, ExceptionsReachTheCaller) {
  expect_throws<std::runtime_error>(
      [] {
        parallel_blocks(20, [](int64_t block) {
          if (block % 7 == 3) throw std::runtime_error("block failed");
        });
      },
      "block failed");
  // And the next loop runs as ever.
  std::atomic<int> runs{0};
  parallel_blocks(20, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs, 20);
}

TEST_P(Parallel, OneThreadWorksAlone) {
  internal::take_most_threads();
  {
    const OneThread alone;
    EXPECT_EQ(num_threads(), 1);
    const OneThread within;
    std::atomic<int> runs{0};
    parallel_blocks(20, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 20);
  }
  EXPECT_EQ(internal::take_most_threads(), 1);
  EXPECT_EQ(num_threads(), GetParam());
}

TEST_P(Parallel, NestedCallsRunEveryBlock) {
  std::atomic<int> runs{0};
  parallel_blocks(6, [&](int64_t) { parallel_blocks(5, [&](int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 30);
}

TEST_P(Parallel, DenormalsAreZeroInsideAndBackOutside) {
  volatile float smallest = std::numeric_limits<float>::min();
  std::atomic<int> nonzero{0};
  parallel_blocks(8, [&](int64_t) {
    const volatile float half = smallest * 0.5f;
    if (half != 0.0f) ++nonzero;
  });
#if defined(__SSE2__) || defined(__aarch64__)
  EXPECT_EQ(nonzero, 0);
#endif
  const volatile float half = smallest * 0.5f;
  EXPECT_NE(half, 0.0f);
}

TEST(FlushDenormals, RestoresWhatWasAlsoWhenNested) {
  volatile float smallest = std::numeric_limits<float>::min();
  {
    const FlushDenormals outer;
    { const FlushDenormals inner; }
#if defined(__SSE2__) || defined(__aarch64__)
    const volatile float half = smallest * 0.5f;
    EXPECT_TRUE(half == 0.0f);
#endif
  }
  const volatile float half = smallest * 0.5f;
  EXPECT_TRUE(half > 0.0f);
}

TEST(NumThreads, AreThoseThatReallyRun) {
  const int before = num_threads();
  set_num_threads(3);
  internal::take_most_threads();
  parallel_blocks(1, [](int64_t) {});
  EXPECT_EQ(internal::take_most_threads(), 1);
  parallel_blocks(2, [](int64_t) {});
  EXPECT_EQ(internal::take_most_threads(), 2);
  parallel_blocks(9, [](int64_t) {});
  EXPECT_EQ(internal::take_most_threads(), 3);
  EXPECT_EQ(internal::take_most_threads(), 1);
  set_num_threads(before);
}

// Waits until so many blocks have come; false if they do not.
bool meet(std::atomic<int>& come, int wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (come < wanted) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// So that a core finds in its caches what it wrote in the loop before. The threads' first blocks
// wait for each other, and so do their second ones: none is left for the other to take.
TEST(NumThreads, EachHasTheSameShareInEveryLoop) {
  const int before = num_threads();
  set_num_threads(2);
  for (int loop = 0; loop < 20; ++loop) {
    std::vector<std::thread::id> ran_by(4);
    std::array<std::atomic<int>, 2> come{};
    std::atomic<bool> have_met{true};
    parallel_blocks(4, [&](int64_t block) {
      ran_by[static_cast<size_t>(block)] = std::this_thread::get_id();
      std::atomic<int>& of_pair = come[static_cast<size_t>(block % 2)];
      ++of_pair;
      if (!meet(of_pair, 2)) have_met = false;
    });
    ASSERT_TRUE(have_met);
    EXPECT_EQ(ran_by[0], std::this_thread::get_id());
    EXPECT_EQ(ran_by[1], ran_by[0]);
    EXPECT_NE(ran_by[2], ran_by[0]);
    EXPECT_EQ(ran_by[3], ran_by[2]);
  }
  set_num_threads(before);
}

TEST(NumThreads, EachTakesWhatIsLeftOfOthers) {
  const int before = num_threads();
  set_num_threads(2);
  std::atomic<int> others{0};
  std::atomic<bool> have_run{false};
  parallel_blocks(8, [&](int64_t block) {
    if (block == 0) {
      have_run = meet(others, 7);
    } else {
      ++others;
    }
  });
  EXPECT_TRUE(have_run);
  set_num_threads(before);
}

TEST(NumThreads, MustBePositive) {
  const int before = num_threads();
  for (const int threads : {0, -3}) {
    expect_throws<StateError>(
        [&] { set_num_threads(threads); },
        "the number of threads must be at least 1, found " + std::to_string(threads));
  }
  EXPECT_EQ(num_threads(), before);
}

// OpenMP's threads are gone in the child, which would wait for them forever.
TEST(ParallelFork, LeavesOneThread) {
  const int before = num_threads();
  set_num_threads(4);
  const auto sum = [] {
    std::atomic<int64_t> total{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) total += i;
    });
    return total.load();
  };
  EXPECT_EQ(sum(), 499500);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    set_num_threads(3);
    ::_exit(num_threads() == 1 && sum() == 499500 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(num_threads(), 4);
  set_num_threads(before);
}

}  // namespace
}  // namespace lacuna::parallel_test
