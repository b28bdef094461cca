// bench_limits: what the processor can do at most, by where its operands come from.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/fed_loops.h"
#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

// A cache's size, or what is common where the system does not say.
int64_t cache_bytes(int name, int64_t common) {
  const long bytes = ::sysconf(name);
  return bytes > 0 ? bytes : common;
}

struct Level {
  std::string name;
  int64_t bytes = 0;  // of a thread's operands; 0: registers
};

// Half of each cache, so that what else lies there need not go; of what many cores share, no more
// than is this program's to take.
std::vector<Level> levels(Size size) {
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

/// A loop on operands of one level, of each thread its own.
class Loop {
 public:
  explicit Loop(const Level& level)
      : floats_(std::max(level.bytes / 4 / kFedLoopFloats, int64_t{1}) * kFedLoopFloats),
        from_registers_(level.bytes == 0) {
    // Long enough for the clock: some 50 µs.
    rounds_ = std::max<int64_t>((int64_t{1} << 22) / floats_, 1);
    for (int thread = 0; thread < num_threads(); ++thread) {
      data_.push_back(Tensor::full(Shape{from_registers_ ? 1 : floats_}, 1.0f));
    }
  }

  void multiply() {
    each([&](int64_t thread) {
      return from_registers_ ? register_loop(floats_, rounds_) : fed_loop(data(thread), rounds_);
    });
  }
  void read() {
    each([&](int64_t thread) {
      float sum = 0.0f;
      for (int64_t round = 0; round < rounds_; ++round) sum += read_loop(data(thread));
      return sum;
    });
  }
  double elements() const {
    return static_cast<double>(floats_ * rounds_) * static_cast<double>(data_.size());
  }
  bool from_registers() const { return from_registers_; }

 private:
  std::span<const float> data(int64_t thread) const {
    return data_[static_cast<size_t>(thread)].storage();
  }
  template <class Body>
  void each(const Body& body) {
    std::vector<float> sums(data_.size());
    parallel_blocks(std::ssize(sums),
                    [&](int64_t thread) { sums[static_cast<size_t>(thread)] = body(thread); });
    volatile float sink = 0.0f;
    for (const float sum : sums) sink = sum;
    static_cast<void>(sink);
  }

  int64_t floats_, rounds_ = 1;
  bool from_registers_;
  std::vector<Tensor> data_;
};

void run(const Settings& settings, Report& report) {
  const std::vector<Level> all = levels(settings.size);
  std::vector<Loop> loops;
  loops.reserve(all.size());
  std::vector<Work> works;
  for (const Level& level : all) {
    Loop& loop = loops.emplace_back(level);
    works.push_back({level.name, {[&loop] { loop.multiply(); }}});
    if (!loop.from_registers())
      works.push_back({level.name + ", read", {[&loop] { loop.read(); }}});
  }
  MeasureOptions options = settings.measuring();
  options.runs = 1;
  const auto timings = measure(works, options);
  Table table{.title = "What the processor can do, " + settings.threads_text(),
              .columns = {"operands from", "KiB a thread", "GFLOP/s, a multiply-add an operand",
                          "GB/s, added up", "spread", "quiet"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Timing& time = timings.at(all[i].name)[0];
    const Rate rate{.time = time, .operations = 2.0 * loops[i].elements()};
    Config json = Config::map({{"workload", "limits"},
                               {"level", all[i].name},
                               {"bytes", all[i].bytes},
                               {"threads", settings.threads},
                               {"gflops", rate.gflops_nonzeros()}});
    std::string read_text;
    if (!loops[i].from_registers()) {
      const double ms = timings.at(all[i].name + ", read")[0].median_ms;
      const double rate_of_reading = 4.0 * loops[i].elements() / ms / 1e6;
      json.set("gb_per_s", rate_of_reading);
      read_text = fixed(rate_of_reading, 1);
    }
    add_time(json, rate);
    report.add_row(std::move(json));
    table.rows.push_back({all[i].name, std::to_string(all[i].bytes / kKiB),
                          fixed(rate.gflops_nonzeros(), 1), read_text,
                          fixed(100 * time.spread, 1) + " %", rate.quiet_text()});
  }
  report.summarize(std::move(table));
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(
      argc, argv, "limits",
      "Rates of multiply-adds with an operand from each level of memory, and of reading there",
      lacuna::bench::run);
}
