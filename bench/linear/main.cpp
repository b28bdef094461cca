// bench_linear: forward and backward of a linear layer, every contender beside raw oneDNN.
//
// Contenders run interleaved in random order within one process (Google Benchmark's random
// interleaving), so that noise of the machine hits all alike; medians and their ratios are printed.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/gemm.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

struct Settings {
  bool quick = false;
  std::string json;
  int threads = 1;
};

struct Row {
  std::string layout, pass;
  double ms = 0.0, spread = 0.0;  // median, and coefficient of variation
};

/// Keeps medians instead of printing every run.
class Medians final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string name = run.run_name.function_name;
      if (run.aggregate_name == "median") ms[name] = run.GetAdjustedRealTime();
      if (run.aggregate_name == "cv") spread[name] = run.real_accumulated_time;
    }
  }
  std::map<std::string, double> ms, spread;
};

using Contenders = std::vector<std::pair<std::string, std::unique_ptr<LinearContender>>>;

Contenders make_contenders(const LinearWorkload& w) {
  Contenders all;
  const auto add = [&](std::string name, std::unique_ptr<LinearContender> contender) {
    if (contender == nullptr) return;
    check(name, *contender, w);
    all.emplace_back(std::move(name), std::move(contender));
  };
  add("onednn", make_onednn(w));
  add("dense", make_dense(w));
  if (w.sparsity > 0.0) add("masked", make_masked(w));
  return all;
}

void register_pass(const std::string& name, LinearContender* contender, bool with_backward) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [contender, with_backward](benchmark::State& state) {
                                 for (auto _ : state) {
                                   contender->forward();
                                   if (with_backward) contender->backward();
                                 }
                               })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

std::vector<Row> measure(const LinearWorkload& w) {
  const Contenders contenders = make_contenders(w);
  for (const auto& [name, contender] : contenders) {
    register_pass(name + "/forward", contender.get(), false);
    register_pass(name + "/forward+backward", contender.get(), true);
  }
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  benchmark::ClearRegisteredBenchmarks();
  std::vector<Row> rows;
  for (const auto& [name, contender] : contenders) {
    for (const char* pass : {"forward", "forward+backward"}) {
      const std::string key = name + "/" + pass;
      rows.push_back({name, pass, medians.ms[key], medians.spread[key]});
    }
  }
  return rows;
}

void report(const LinearWorkload& w, const Settings& settings, const std::vector<Row>& rows,
            Config& json) {
  std::printf("\nlinear  batch %lld, %lld -> %lld, sparsity %.2f, %d thread%s\n",
              static_cast<long long>(w.batch), static_cast<long long>(w.in),
              static_cast<long long>(w.out), w.sparsity, settings.threads,
              settings.threads == 1 ? "" : "s");
  std::printf("%-10s %-18s %10s %8s %12s %10s\n", "layout", "pass", "ms", "spread", "GFLOP/s dense",
              "ratio");
  std::map<std::string, double> dense_ms;
  for (const Row& row : rows) dense_ms.emplace(row.pass, row.ms);  // the first is the opponent
  for (const Row& row : rows) {
    const double products = row.pass == "forward" ? 1.0 : 3.0;
    const double operations = 2.0 * products * static_cast<double>(w.batch * w.in * w.out);
    const double ratio = dense_ms[row.pass] / row.ms;
    std::printf("%-10s %-18s %10.4f %7.1f%% %12.1f %9.2fx\n", row.layout.c_str(), row.pass.c_str(),
                row.ms, 100 * row.spread, operations / row.ms / 1e6, ratio);
    json.push_back(Config::map({{"workload", "linear"},
                                {"batch", w.batch},
                                {"in", w.in},
                                {"out", w.out},
                                {"threads", settings.threads},
                                {"sparsity", w.sparsity},
                                {"layout", row.layout},
                                {"pass", row.pass},
                                {"ms", row.ms},
                                {"dense_ms", dense_ms[row.pass]},
                                {"ratio", ratio}}));
  }
}

int run(const Settings& settings) {
  set_num_threads(settings.threads);
  omp_set_num_threads(settings.threads);  // of raw oneDNN
  std::printf(
      "%s kernels, dense products by %s, contender 'onednn' is dnnl_sgemm called directly\n",
      active_instruction_set().c_str(), dense_provider().c_str());
  std::vector<std::array<int64_t, 3>> shapes{{128, 1024, 1024}};
  std::vector<double> sparsities{0.0, 0.9};
  if (!settings.quick) {
    shapes.insert(shapes.end(), {{128, 4096, 4096}, {2048, 384, 1536}, {1, 1024, 1024}});
  }
  Config json = Config::list();
  for (const auto& [batch, in, out] : shapes) {
    for (const double sparsity : sparsities) {
      const LinearWorkload w = LinearWorkload::random(batch, in, out, sparsity);
      report(w, settings, measure(w), json);
    }
  }
  if (!settings.json.empty()) std::ofstream(settings.json) << json.to_json_indented();
  return 0;
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  lacuna::bench::Settings settings;
  CLI::App app{"Forward and backward of a linear layer beside raw oneDNN"};
  app.add_flag("--quick", settings.quick, "1024 -> 1024 at batch 128 only");
  app.add_option("--json", settings.json, "Also write rows as JSON to this file");
  app.add_option("--threads", settings.threads, "Threads of every contender")
      ->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  std::vector<std::string> flags = {argv[0], "--benchmark_enable_random_interleaving=true",
                                    "--benchmark_repetitions=15", "--benchmark_min_time=0.03"};
  std::vector<char*> pointers;
  for (std::string& flag : flags) pointers.push_back(flag.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  try {
    return lacuna::bench::run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_linear: %s\n", error.what());
    return 1;
  }
}
