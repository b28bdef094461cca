// bench_latency: how soon a model answers, sparse and dense, in int8 and in float32.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/program.h"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "latency/int8_products.h"
#include "latency/served_model.h"
#include "latency/served_run.h"

namespace lacuna::bench {
namespace {

constexpr const char* kInt8 = "int8 1x4";

struct Contender {
  std::string name;
  std::function<void()> answer;
  double difference = -1.0;  // from float32, relative; below 0: not compared
};

struct Chosen {
  std::vector<std::string> models, runs;
  std::vector<double> sparsities, examples;
};

double relative_difference(const Tensor& found, const Tensor& expected) {
  const std::vector<float> u = found.to_vector(), v = expected.to_vector();
  double squares = 0.0, all = 0.0;
  for (size_t i = 0; i < v.size(); ++i) {
    squares += std::pow(double{u[i]} - double{v[i]}, 2.0);
    all += std::pow(double{v[i]}, 2.0);
  }
  return std::sqrt(squares / all);
}

// Each in the place of the others' values: what must be equal is compared before anything is timed.
std::vector<Contender> contenders(const ServedNetwork& network, int64_t examples, double sparsity) {
  const Tensor x = network.draw(examples, "x");
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const ServedStorage& storage) {
    auto model = std::make_shared<ServedModel>(network, examples, storage);
    all.push_back({.name = name, .answer = [model, x] { model->run(x); }});
    return model->run(x);
  };
  const auto compare = [&](const Tensor& found, const Tensor& expected, double tolerance) {
    Contender& last = all.back();
    last.difference = relative_difference(found, expected);
    if (last.difference <= tolerance) return;
    throw Error(network.name + ", " + last.name + ": its output differs by " +
                std::to_string(last.difference) + " of that in float32");
  };
  const ServedStorage sparse{.layout = "csr", .sparsity = sparsity};
  ServedStorage masked = sparse, grouped = sparse;
  masked.layout = "masked";
  grouped.layout = "auto";
  grouped.in_groups = true;
  const Tensor expected = ServedModel(network, examples, masked).run(x);
  const Tensor found = add("float32 csr", sparse);
  compare(found, expected, 1e-4);
  const Tensor in_groups = add("float32 1x4", grouped);
  grouped.in_int8 = true;
  const Tensor in_int8 = add(kInt8, grouped);
  compare(in_int8, in_groups, network.tolerance);
  ServedStorage free = sparse;
  free.in_int8 = true;
  const Tensor in_free_int8 = add("int8 csr", free);
  compare(in_free_int8, found, network.tolerance);
  const auto dense = std::make_shared<ServedModel>(network, examples, ServedStorage{});
  all.push_back({.name = "float32 dense", .answer = [dense, x] { dense->run(x); }});
  if (Int8Products::are_there()) {
    const auto products = std::make_shared<Int8Products>(network, dense->model(), examples);
    all.push_back({.name = "onednn's products in int8", .answer = [products] { products->run(); }});
  }
  return all;
}

// Milliseconds of each contender's answers, ascending. They take turns of some 2 ms.
std::map<std::string, std::vector<double>> answer_times(const std::vector<Contender>& all,
                                                        const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const bool is_full = settings.size == Size::Full;
  size_t wanted = settings.size == Size::Tiny ? 2 : is_full ? 2000 : 500;
  if (settings.repetitions > 0) wanted = static_cast<size_t>(settings.repetitions);
  const double most_ms = settings.size == Size::Tiny ? 0.0 : is_full ? 4000.0 : 500.0;
  constexpr size_t kFewest = 2;
  std::map<std::string, std::vector<double>> times;
  std::map<std::string, double> sums;
  const auto is_done = [&](const Contender& c) {
    const size_t count = times[c.name].size();
    return count >= wanted || (count >= kFewest && sums[c.name] >= most_ms);
  };
  for (const Contender& c : all) c.answer();  // to warm up
  while (!std::ranges::all_of(all, is_done)) {
    for (const Contender& c : all) {
      double turn = 0.0;
      while (turn < 2.0 && !is_done(c)) {
        const Clock::time_point start = Clock::now();
        c.answer();
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        times[c.name].push_back(ms);
        turn += ms;
        sums[c.name] += ms;
      }
    }
  }
  for (auto& [name, samples] : times) std::ranges::sort(samples);
  return times;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// What answers, and what is asked.
struct Requests {
  std::string name, title;
  int64_t examples;
  double sparsity;
  std::string reference;  ///< the contender that the others are compared with
};

void measure(const Requests& asked, const std::vector<Contender>& all, int threads,
             const Settings& settings, Report& report) {
  const auto times = answer_times(all, settings);
  Table table{.title = asked.title + ", " + std::to_string(asked.examples) +
                       (asked.examples == 1 ? " example, " : " examples, ") +
                       fixed(100 * asked.sparsity, 1) + " %, " + std::to_string(threads) +
                       (threads == 1 ? " thread" : " threads"),
              .columns = {"contender", "p50 ms", "p99 ms", "answers",
                          asked.reference + " is faster by", "difference"}};
  const double reference_ms = quantile(times.at(asked.reference), 0.5);
  for (const Contender& c : all) {
    const std::vector<double>& samples = times.at(c.name);
    const double middle = quantile(samples, 0.5), late = quantile(samples, 0.99);
    const bool is_compared = c.difference >= 0.0;
    report.add_row(Config::map({{"workload", "latency"},
                                {"model", asked.name},
                                {"contender", c.name},
                                {"threads", threads},
                                {"batch", asked.examples},
                                {"sparsity", asked.sparsity},
                                {"p50_ms", middle},
                                {"p99_ms", late},
                                {"answers", static_cast<int64_t>(samples.size())},
                                {"ratio", middle / reference_ms},
                                {"difference", is_compared ? Config(c.difference) : Config()},
                                {"int8_kernels", int8_kernels_name()},
                                {"instruction_set", active_instruction_set()}}));
    table.rows.push_back({c.name, fixed(middle, 3), fixed(late, 3), std::to_string(samples.size()),
                          fixed(middle / reference_ms, 2) + "x",
                          is_compared ? fixed(100 * c.difference, 2) + " %" : ""});
  }
  report.summarize(std::move(table));
}

void use_threads(int threads) {
  set_num_threads(threads);
  omp_set_num_threads(threads);  // of raw oneDNN
}

// Outputs are not compared: drawn inputs may exceed the ranges of a run's static activations.
void measure_run(const ServedRun& run, int64_t examples, int threads, const Settings& settings,
                 Report& report) {
  use_threads(threads);
  const Batch batch = run.draw(examples);
  std::vector<Contender> all;
  for (const auto& [name, model] : run.precisions()) {
    all.push_back({.name = name, .answer = [&batch, model = model] {
                     const NoGrad no_grad;
                     run_model(*model, batch).value();
                   }});
  }
  const std::string reference = all.back().name;  // int8, if there is one
  measure({.name = run.folder(),
           .title = run.folder(),
           .examples = examples,
           .sparsity = run.sparsity(),
           .reference = reference},
          all, threads, settings, report);
}

void run(Chosen chosen, const Settings& settings, Report& report) {
  if (chosen.models.empty() && chosen.runs.empty()) chosen.models = served_names();
  if (chosen.sparsities.empty()) chosen.sparsities = {0.9};
  if (chosen.examples.empty()) chosen.examples = {1};
  std::vector<int> threads = {1};
  if (settings.threads > 1) threads.push_back(settings.threads);
  for (const std::string& folder : chosen.runs) {
    const ServedRun served(folder);
    for (const double examples : chosen.examples) {
      for (const int count : threads) {
        measure_run(served, static_cast<int64_t>(examples), count, settings, report);
      }
    }
  }
  for (const std::string& model : chosen.models) {
    const ServedNetwork network = find_served(model, settings.size == Size::Tiny);
    for (const double examples : chosen.examples) {
      for (const double sparsity : chosen.sparsities) {
        for (const int count : threads) {
          use_threads(count);
          const auto asked = static_cast<int64_t>(examples);
          measure({.name = network.name,
                   .title = network.title,
                   .examples = asked,
                   .sparsity = sparsity,
                   .reference = kInt8},
                  contenders(network, asked, sparsity), count, settings, report);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  Chosen chosen;
  return run_program(
      argc, argv, "latency",
      "How soon a model answers, in int8 and in float32, sparse and dense; on one thread and, with "
      "--threads, on more",
      [&](const Settings& settings, Report& report) { run(chosen, settings, report); },
      {{.name = "--model",
        .help = "mlp resnet20 bert_block (default: all)",
        .texts = &chosen.models},
       {.name = "--run",
        .help = "Run folders or checkpoints to measure, in float32 and, if quantized, in int8",
        .texts = &chosen.runs},
       {.name = "--examples",
        .help = "Examples of a request (default 1)",
        .numbers = &chosen.examples,
        .lowest = 1,
        .highest = 4096},
       {.name = "--sparsity",
        .help = "Measure these sparsities, as 0.9 0.95 (default 0.9)",
        .numbers = &chosen.sparsities,
        .lowest = 0.0,
        .highest = 0.999999}});
}
