#include "common/moment.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "common/fed_loops.h"
#include "common/report.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::bench {
namespace {

constexpr double kLook = 20e-6;  // seconds of the loop that is fed from memory
constexpr double kQuiet = 0.8;
constexpr double kLeastOwnTime = 0.98;
constexpr int kFirstLooks = 100;

bool looked = false;

// The results of loops go here, so that they are computed.
volatile float sink = 0.0f;

template <class Loop>
double seconds_of(const Loop& loop) {
  const auto start = std::chrono::steady_clock::now();
  sink = loop();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double operations(int64_t rounds) {
  return 2.0 * static_cast<double>(kFedLoopFloats) * static_cast<double>(rounds);
}

// The value that nineteen of twenty do not exceed.
double high_value(std::vector<double> values) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(0.95 * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

bool MachineProbe::has_looked() { return looked; }

MachineProbe& MachineProbe::instance() {
  static MachineProbe probe;
  looked = true;
  return probe;
}

MachineProbe::MachineProbe() : data_(Tensor::full(Shape{kFedLoopFloats}, 1.0f)) {
  double seconds = 0.0;
  while ((seconds = seconds_of([&] { return fed_loop(data_.storage(), rounds_); })) < kLook / 2) {
    rounds_ *= 2;
  }
  rounds_ =
      std::max<int64_t>(static_cast<int64_t>(static_cast<double>(rounds_) * kLook / seconds), 1);
  for (int i = 0; i < kFirstLooks; ++i) look();
}

Moment MachineProbe::look() {
  const int64_t rounds = rounds_, half = std::max<int64_t>(rounds / 2, 1);
  std::vector<Moment> threads(static_cast<size_t>(num_threads()));
  parallel_blocks(std::ssize(threads), [&](int64_t thread) {
    const double fed = seconds_of([&] { return fed_loop(data_.storage(), rounds); });
    const double plain = seconds_of([&] { return register_loop(kFedLoopFloats, half); });
    threads[static_cast<size_t>(thread)] = {.l1_fed_gflops = operations(rounds) / fed / 1e9,
                                            .fma_gflops = operations(half) / plain / 1e9};
  });
  Moment sum;
  for (const Moment& moment : threads) {
    sum.l1_fed_gflops += moment.l1_fed_gflops;
    sum.fma_gflops += moment.fma_gflops;
  }
  seen_.push_back(sum);
  return sum;
}

double MachineProbe::best_l1_fed_gflops() const {
  std::vector<double> rates;
  for (const Moment& moment : seen_) rates.push_back(moment.l1_fed_gflops);
  return high_value(std::move(rates));
}

bool MachineProbe::is_quiet(const Moment& moment) const {
  return moment.l1_fed_gflops >= kQuiet * best_l1_fed_gflops() && moment.own_time >= kLeastOwnTime;
}

std::string MachineProbe::to_string() const {
  std::vector<double> plain;
  for (const Moment& moment : seen_) plain.push_back(moment.fma_gflops);
  return "in its best moments " + fixed(best_l1_fed_gflops(), 0) +
         " GFLOP/s with an operand from L1, " + fixed(high_value(std::move(plain)), 0) +
         " from registers";
}

}  // namespace lacuna::bench
