#include "lacuna/framework/core/parallel.h"

#include <fmt/core.h>
#include <omp.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <string>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

std::atomic<int> requested_threads{0};
thread_local bool is_alone = false;
std::atomic<int> most_threads{1};
std::atomic<bool> has_team{false};   // this process, or one before its fork, has used several
std::atomic<bool> lost_team{false};  // at its fork

// Threads of OpenMP that another library has started would be waited for, too.
void notice_other_threads() {
  constexpr nlink_t kOfAFolder = 2;
  struct stat tasks {};
  if (::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > kOfAFolder + 1) has_team = true;
}

[[maybe_unused]] const int kForkIsNoticed =
    pthread_atfork(notice_other_threads, nullptr, [] { lost_team = has_team.load(); });

// While it lives, libraries that use OpenMP (oneDNN) run on the calling thread alone, and denormals
// are flushed: the conditions inside every block.
class BlockScope {
 public:
  BlockScope() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~BlockScope() { omp_set_num_threads(saved_); }
  BlockScope(const BlockScope&) = delete;
  BlockScope& operator=(const BlockScope&) = delete;

 private:
  int saved_;
  FlushDenormals flush_;
};

// Blocks that follow each other, which a thread runs before it takes those that are left of others.
// So a thread has the same part of the examples in most loops, and finds in its core's caches what
// it has written in the loop before. On processors whose cores share no near cache (Intel's),
// another core's data takes several times as long.
struct alignas(64) Share {
  int64_t next;  // changed by atomic_ref alone while the loop runs
  int64_t end;
};

constexpr int kMostShares = 128;

int64_t begin_of_share(int64_t share, int64_t blocks, int64_t shares) {
  return blocks / shares * share + std::min(share, blocks % shares);
}

}  // namespace

int num_threads() {
  if (is_alone || lost_team.load(std::memory_order_relaxed)) return 1;
  const int requested = requested_threads.load(std::memory_order_relaxed);
  return requested > 0 ? requested : omp_get_max_threads();
}

void set_num_threads(int threads) {
  if (threads < 1) {
    throw StateError(fmt::format("the number of threads must be at least 1, found {}", threads));
  }
  requested_threads = threads;
}

OneThread::OneThread() : saved_(is_alone) { is_alone = true; }
OneThread::~OneThread() { is_alone = saved_; }

#if defined(__SSE2__)
// MXCSR bit 15 flushes denormal results to zero, bit 6 reads denormal operands as zero.
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  _mm_setcsr(static_cast<unsigned>(saved_) | 0x8040u);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
// FPCR bit 24 (FZ) flushes denormals.
FlushDenormals::FlushDenormals() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" ::"r"(saved_ | (uint64_t{1} << 24)));
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() = default;
#endif

namespace internal {

int take_most_threads() { return most_threads.exchange(1); }

void run_blocks(int64_t blocks, BlockFunction function, void* context) {
  const int threads = static_cast<int>(blocks < num_threads() ? blocks : num_threads());
  if (threads <= 1 || omp_in_parallel()) {
    const BlockScope scope;
    for (int64_t block = 0; block < blocks; ++block) function(context, block);
    return;
  }
  std::array<Share, kMostShares> shares;  // those beyond `count` stay untouched
  const int count = std::min(threads, kMostShares);
  for (int i = 0; i < count; ++i) {
    shares[static_cast<size_t>(i)].next = begin_of_share(i, blocks, count);
    shares[static_cast<size_t>(i)].end = begin_of_share(i + 1, blocks, count);
  }
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  has_team.store(true, std::memory_order_relaxed);
#pragma omp parallel num_threads(threads)
  {
    const BlockScope scope;
#pragma omp master
    if (omp_get_num_threads() > most_threads) most_threads = omp_get_num_threads();
    try {
      for (int i = 0; i < count; ++i) {
        Share& share = shares[static_cast<size_t>((omp_get_thread_num() + i) % count)];
        const std::atomic_ref<int64_t> next(share.next);
        while (next.load(std::memory_order_relaxed) < share.end &&
               !failed.load(std::memory_order_relaxed)) {
          const int64_t block = next.fetch_add(1, std::memory_order_relaxed);
          if (block < share.end) function(context, block);
        }
      }
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace internal
}  // namespace lacuna
