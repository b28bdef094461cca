#include "common/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "common/fed_loops.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::bench {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

// A cache's size, or a common one if the system does not report it.
int64_t cache_bytes(int name, int64_t common) {
  const long bytes = ::sysconf(name);
  return bytes > 0 ? bytes : common;
}

// `body(thread)` on every thread; its result is used.
template <class Body>
void on_each_thread(size_t threads, const Body& body) {
  std::vector<float> sums(threads);
  parallel_blocks(std::ssize(sums),
                  [&](int64_t thread) { sums[static_cast<size_t>(thread)] = body(thread); });
  volatile float sink = 0.0f;
  for (const float sum : sums) sink = sum;
  static_cast<void>(sink);
}

// The least of a few times.
template <class Run>
double best_seconds(int runs, const Run& run) {
  double best = 1e300;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

}  // namespace

std::vector<MemoryLevel> memory_levels(Size size) {
  const int64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 * kKiB);
  const int64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, kMiB);
  const int64_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 * kMiB);
  const int64_t memory =
      size == Size::Tiny ? 4 * kMiB : std::clamp(4 * l3, 256 * kMiB, 1024 * kMiB);
  const int64_t shared = std::max(4 * l2, std::min(l3 / 2, 16 * kMiB));
  return {{"registers"},
          {"L1", l1 / 2},
          {"L2", l2 / 2},
          {"L3", std::min(shared, memory)},
          {"memory", memory}};
}

LevelLoop::LevelLoop(const MemoryLevel& level)
    : floats_(std::max(level.bytes / 4 / kFedLoopFloats, int64_t{1}) * kFedLoopFloats),
      from_registers_(level.bytes == 0) {
  // Long enough for the clock: some 50 µs.
  rounds_ = std::max<int64_t>((int64_t{1} << 22) / floats_, 1);
  for (int thread = 0; thread < num_threads(); ++thread) {
    data_.push_back(Tensor::full(Shape{from_registers_ ? 1 : floats_}, 1.0f));
  }
}

void LevelLoop::multiply() {
  on_each_thread(data_.size(), [&](int64_t thread) {
    return from_registers_ ? register_loop(floats_, rounds_) : fed_loop(data(thread), rounds_);
  });
}

void LevelLoop::read() {
  on_each_thread(data_.size(), [&](int64_t thread) {
    float sum = 0.0f;
    for (int64_t round = 0; round < rounds_; ++round) sum += read_loop(data(thread));
    return sum;
  });
}

double LevelLoop::elements() const {
  return static_cast<double>(floats_ * rounds_) * static_cast<double>(data_.size());
}

MachineLimits MachineLimits::measured(Size size) {
  const int runs = size == Size::Tiny ? 1 : 15;
  double fma_gflops = 0.0;
  std::vector<Level> levels;
  for (const MemoryLevel& level : memory_levels(size)) {
    LevelLoop loop(level);
    if (loop.from_registers()) {
      fma_gflops = 2.0 * loop.elements() / best_seconds(runs, [&] { loop.multiply(); }) / 1e9;
      continue;
    }
    loop.read();  // brings the operands there
    const double seconds = best_seconds(runs, [&] { loop.read(); });
    levels.push_back({level.bytes, 4.0 * loop.elements() / seconds / 1e9});
  }
  return {fma_gflops, std::move(levels)};
}

double MachineLimits::gb_per_s(double bytes) const {
  const auto holds = std::ranges::find_if(
      levels_, [&](const Level& level) { return bytes <= static_cast<double>(level.bytes); });
  return holds == levels_.end() ? levels_.back().gb_per_s : holds->gb_per_s;
}

double MachineLimits::bound_ms(double operations, double bytes) const {
  return std::max(operations / fma_gflops_, bytes / gb_per_s(bytes)) / 1e6;
}

}  // namespace lacuna::bench
