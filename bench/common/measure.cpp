#include "common/measure.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lacuna::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string counter_name(size_t stage) { return "stage" + std::to_string(stage); }

// One repetition: the stages' ends, averaged over its runs, are counters of Google Benchmark's.
void run(const Work& work, benchmark::State& state) {
  std::vector<double> ends(work.stages.size());
  for (auto _ : state) {
    work.prepare();
    const Clock::time_point start = Clock::now();
    double end = 0.0;
    for (size_t stage = 0; stage < work.stages.size(); ++stage) {
      work.stages[stage]();
      end = seconds_since(start);
      ends[stage] += end;
    }
    state.SetIterationTime(end);
  }
  for (size_t stage = 0; stage < ends.size(); ++stage) {
    state.counters[counter_name(stage)] = ends[stage] / static_cast<double>(state.iterations());
  }
}

// Keeps every repetition's counters, and prints nothing.
class Samples final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      auto& stages = seconds[run.run_name.function_name];
      stages.resize(run.counters.size());
      for (size_t stage = 0; stage < stages.size(); ++stage) {
        stages[stage].push_back(run.counters.at(counter_name(stage)));
      }
    }
  }
  std::map<std::string, std::vector<std::vector<double>>> seconds;  // [stage][repetition]
};

Timing summarize(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const auto quantile = [&](double q) {
    return seconds[static_cast<size_t>(q * static_cast<double>(seconds.size() - 1) + 0.5)];
  };
  double sum = 0.0;
  for (const double s : seconds) sum += s;
  const double median = quantile(0.5);
  return {.median_ms = 1e3 * median,
          .mean_ms = 1e3 * sum / static_cast<double>(seconds.size()),
          .spread = (quantile(0.75) - quantile(0.25)) / (2.0 * median),
          .repetitions = static_cast<int>(seconds.size())};
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
  for (auto& [name, stages] : samples.seconds) {
    for (auto& seconds : stages) timings[name].push_back(summarize(std::move(seconds)));
  }
  return timings;
}

}  // namespace lacuna::bench
