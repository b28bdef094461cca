// Threads: the one place where OpenMP is used. Work is cut into blocks that do not depend on the
// number of threads, so results do not either.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lacuna {

/// Threads that parallel_for uses: set by set_num_threads, else OMP_NUM_THREADS or all cores; 1
/// while a OneThread exists, and in a process that was forked by one that has used several:
/// OpenMP's threads do not live on there, and waiting for them would never end.
int num_threads();
/// *Errors:* StateError unless threads ≥ 1.
void set_num_threads(int threads);

/// While it exists, the calling thread works alone: num_threads() is 1 for it.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  bool saved_;
};

/// While it exists, denormal floats are treated as zero in the calling thread; its destructor
/// restores the previous mode. parallel_for does the same in its workers.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

namespace internal {
using BlockFunction = void (*)(void* context, int64_t block);
void run_blocks(int64_t blocks, BlockFunction function, void* context);
/// The largest number of threads that a call of parallel_blocks has used since the last call of
/// this function, for tests that need sizes large enough for several threads; 1 if none used
/// several.
int take_most_threads();
}  // namespace internal

/// Calls `body(block)` once for each block in [0, blocks), on several threads if available. Which
/// thread runs which block is unspecified. The first exception thrown by a body is rethrown here,
/// after those that run have ended; blocks that have not begun are then left out. Nested calls, and
/// OpenMP libraries called by a body, run in the calling thread. *Cost:* no allocation.
template <class Body>
void parallel_blocks(int64_t blocks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  internal::run_blocks(
      blocks, [](void* context, int64_t block) { (*static_cast<Plain*>(context))(block); },
      const_cast<std::remove_const_t<Plain>*>(&body));
}

/// Cuts [0, count) into ranges of `grain` and calls `body(begin, end)` for each, in parallel.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  parallel_blocks((count + grain - 1) / grain, [&](int64_t block) {
    const int64_t begin = block * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

}  // namespace lacuna
