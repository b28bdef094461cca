#include "common/measure.h"

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "common/clock.h"
#include "common/moment.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna::bench {
namespace {

// In which this thread has run.
double thread_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr double kBetweenLooks = 2e-3;  // seconds that may pass without one, within a repetition
// Counters in addition to those of the stages.
constexpr const char *kL1Fed = "l1", *kFma = "fma", *kOwnTime = "own";

std::string counter_name(size_t stage) { return "stage" + std::to_string(stage); }

// One repetition: the stages' ends, averaged over its runs, are counters of Google Benchmark's, and
// so is what the machine gave meanwhile.
void run(const Work& work, benchmark::State& state) {
  MachineProbe& probe = MachineProbe::instance();
  std::vector<double> ends(work.stages.size());
  Moment sum;
  double own = 0.0, all = 0.0;  // seconds of the thread, and of the clock
  int looks = 0;
  Clock::time_point last_look;
  const auto look = [&] {
    const Moment moment = probe.look();
    sum.l1_fed_gflops += moment.l1_fed_gflops;
    sum.fma_gflops += moment.fma_gflops;
    ++looks;
    last_look = Clock::now();
  };
  look();
  for (auto _ : state) {
    work.prepare();
    const double own_start = thread_seconds();
    const Clock::time_point start = Clock::now();
    double end = 0.0;
    for (size_t stage = 0; stage < work.stages.size(); ++stage) {
      work.stages[stage]();
      end = seconds_since(start);
      ends[stage] += end;
    }
    own += thread_seconds() - own_start;
    all += end;
    state.SetIterationTime(end);
    if (seconds_since(last_look) > kBetweenLooks) look();
  }
  look();
  for (size_t stage = 0; stage < ends.size(); ++stage) {
    state.counters[counter_name(stage)] = ends[stage] / static_cast<double>(state.iterations());
  }
  state.counters[kL1Fed] = sum.l1_fed_gflops / looks;
  state.counters[kFma] = sum.fma_gflops / looks;
  state.counters[kOwnTime] = num_threads() == 1 ? own / all : 1.0;
}

/// A work's repetitions, in the order in which they ran.
struct Repetitions {
  std::vector<std::vector<double>> seconds;  // [stage][repetition]
  std::vector<Moment> moments;

  int quiet() const {
    return static_cast<int>(std::ranges::count_if(
        moments, [](const Moment& moment) { return MachineProbe::instance().is_quiet(moment); }));
  }
};

// Keeps every repetition's counters, and prints nothing.
class Samples final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      Repetitions& work = works[run.run_name.function_name];
      work.seconds.resize(run.counters.size() - 3);
      for (size_t stage = 0; stage < work.seconds.size(); ++stage) {
        work.seconds[stage].push_back(run.counters.at(counter_name(stage)));
      }
      work.moments.push_back({.l1_fed_gflops = run.counters.at(kL1Fed),
                              .fma_gflops = run.counters.at(kFma),
                              .own_time = run.counters.at(kOwnTime)});
    }
  }
  std::map<std::string, Repetitions> works;
};

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0.0 : quantile(values, 0.5);
}

// Of so many repetitions, those in quiet moments that are enough to count alone.
int enough(int repetitions) { return std::min(repetitions, std::max(3, repetitions / 5)); }

Timing summarize(const Repetitions& work, size_t stage, bool quiet_alone) {
  std::vector<double> counted, busy, l1_fed, fma;
  double sum = 0.0;
  for (size_t i = 0; i < work.moments.size(); ++i) {
    const Moment& moment = work.moments[i];
    const double seconds = work.seconds[stage][i];
    const bool is_quiet = MachineProbe::instance().is_quiet(moment);
    if (!is_quiet) busy.push_back(seconds);
    if (quiet_alone && !is_quiet) continue;
    counted.push_back(seconds);
    l1_fed.push_back(moment.l1_fed_gflops);
    fma.push_back(moment.fma_gflops);
    sum += seconds;
  }
  std::ranges::sort(counted);
  const double middle = quantile(counted, 0.5);
  return {.median_ms = 1e3 * middle,
          .mean_ms = 1e3 * sum / static_cast<double>(counted.size()),
          .spread = (quantile(counted, 0.75) - quantile(counted, 0.25)) / (2.0 * middle),
          .repetitions = static_cast<int>(work.moments.size()),
          .quiet = static_cast<int>(work.moments.size() - busy.size()),
          .is_quiet = quiet_alone,
          .busy_ms = 1e3 * median(std::move(busy)),
          .l1_fed_gflops = median(std::move(l1_fed)),
          .fma_gflops = median(std::move(fma))};
}

// The only flag: the library takes it from a command line alone.
void interleave() {
  static bool done = false;
  if (done) return;
  std::string program = "bench", flag = "--benchmark_enable_random_interleaving=true";
  char* arguments[] = {program.data(), flag.data()};
  int count = 2;
  benchmark::Initialize(&count, arguments);
  done = true;
}

}  // namespace

std::map<std::string, std::vector<Timing>> measure(const std::vector<Work>& works,
                                                   const MeasureOptions& options) {
  interleave();
  for (const Work& work : works) {
    work.prepare();
    const Clock::time_point start = Clock::now();
    for (const auto& stage : work.stages) stage();
    const double ms = 1e3 * seconds_since(start);
    const int runs =
        options.runs > 0 ? options.runs : std::clamp(static_cast<int>(std::ceil(0.02 / ms)), 1, 50);
    const double affordable = std::min(options.most_ms / (ms * runs), 1e6);
    const int repetitions =
        std::min(options.repetitions, std::max(static_cast<int>(affordable), 5));
    benchmark::RegisterBenchmark(work.name.c_str(),
                                 [&work](benchmark::State& state) { run(work, state); })
        ->UseManualTime()
        ->Iterations(runs)
        ->Repetitions(repetitions);
  }
  Samples samples;
  benchmark::RunSpecifiedBenchmarks(&samples);
  benchmark::ClearRegisteredBenchmarks();
  std::map<std::string, std::vector<Timing>> timings;
  for (const auto& [name, work] : samples.works) {
    const bool quiet_alone = work.quiet() >= enough(static_cast<int>(work.moments.size()));
    for (size_t stage = 0; stage < work.seconds.size(); ++stage) {
      timings[name].push_back(summarize(work, stage, quiet_alone));
    }
  }
  return timings;
}

Timing Timing::operator+(const Timing& other) const {
  const double ms = median_ms + other.median_ms;
  const auto mean = [&](double a, double b) {
    return ms == 0.0 ? 0.0 : (a * median_ms + b * other.median_ms) / ms;
  };
  return {.median_ms = ms,
          .mean_ms = mean_ms + other.mean_ms,
          .spread = mean(spread, other.spread),
          .repetitions = std::min(repetitions, other.repetitions),
          .quiet = std::min(quiet, other.quiet),
          .is_quiet = is_quiet && other.is_quiet,
          .busy_ms = busy_ms == 0.0 || other.busy_ms == 0.0 ? 0.0 : busy_ms + other.busy_ms,
          .l1_fed_gflops = mean(l1_fed_gflops, other.l1_fed_gflops),
          .fma_gflops = mean(fma_gflops, other.fma_gflops)};
}

Timing Timing::operator*(double times) const {
  Timing result = *this;
  result.median_ms *= times;
  result.mean_ms *= times;
  result.busy_ms *= times;
  return result;
}

}  // namespace lacuna::bench
