// bench_model: whole training steps of convolutional networks, sparse beside dense.
#include <algorithm>
#include <cmath>
#include <memory>

#include "common/program.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "model/convolutions.h"
#include "model/trainee.h"

namespace lacuna::bench {
namespace {

constexpr const char* kDense = "dense";

struct Contender {
  std::string name;
  Storage storage;
  std::unique_ptr<ImageTrainee> trainee;
};

// The first losses, of a few examples, must be those of the masked layout.
void check(const std::string& name, const Network& network, Storage storage) {
  constexpr int64_t kExamples = 4;
  ImageTrainee trainee(network, kExamples, storage);
  storage.layout = "masked";
  ImageTrainee reference(network, kExamples, storage);
  for (int step = 0; step < 2; ++step) {
    const float found = trainee.step(), expected = reference.step();
    if (!(std::abs(found - expected) <= 1e-3f * std::abs(expected))) {
      throw Error(name + ": the loss of step " + std::to_string(step) + " is " +
                  std::to_string(found) + ", in layout masked " + std::to_string(expected));
    }
  }
}

std::vector<Contender> contenders(const Network& network, const std::vector<double>& sparsities) {
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const Storage& storage) {
    if (storage.layout != kDense) check(name, network, storage);
    all.push_back({name, storage, std::make_unique<ImageTrainee>(network, network.batch, storage)});
  };
  add(kDense, {});
  for (const double sparsity : sparsities) {
    for (const char* layout : {"csr", "auto"}) {
      add(std::string(layout) + " at " + fixed(100 * sparsity, 1) + " %",
          {.layout = layout, .sparsity = sparsity});
    }
  }
  return all;
}

Config to_json(const std::map<std::string, double>& ms_by_kind) {
  Config map = Config::map();
  for (const auto& [kind, ms] : ms_by_kind) map.set(kind, ms);
  return map;
}

// Where the steps' time goes, a column for each contender.
Table kinds(const Network& network, const std::vector<Contender>& all) {
  Table table{.title = "ms of a step of " + network.title + " by kind of work",
              .columns = {"kind"}};
  for (const Contender& c : all) {
    table.columns.push_back(c.name);
    for (const auto& [kind, ms] : c.trainee->ms_by_kind()) {
      auto row = std::ranges::find_if(table.rows, [&](const auto& r) { return r[0] == kind; });
      if (row == table.rows.end()) row = table.rows.insert(row, {kind});
      row->resize(table.columns.size() - 1);
      row->push_back(fixed(ms, 2));
    }
  }
  for (auto& row : table.rows) row.resize(table.columns.size());
  return table;
}

void compare(const Network& network, const std::vector<double>& sparsities,
             const MeasureOptions& options, const Settings& settings, Report& report) {
  const std::vector<Contender> all = contenders(network, sparsities);
  const ConvolutionSum convolutions(all.front().trainee->model(), network.batch);
  std::vector<Work> works = convolutions.works();
  for (const Contender& c : all) {
    works.push_back({c.name, {[&trainee = *c.trainee] { trainee.step(); }}});
  }
  const auto timings = measure(works, options);
  const double dense_ms = timings.at(kDense)[0].median_ms;
  const double convolutions_ms = convolutions.best_ms(timings);
  Table table{.title = "Training steps of " + network.title + ", batch " +
                       std::to_string(network.batch) + ", images of " +
                       std::to_string(network.size) +
                       ", SGD with momentum, all convolutions but the first sparse, " +
                       settings.threads_text(),
              .columns = {"sparsity", "layout", "stored as", "ms a step", "spread", "over dense",
                          "over oneDNN's convolutions"}};
  for (const Contender& c : all) {
    const Timing& time = timings.at(c.name)[0];
    Config json = Config::map({{"workload", "model"},
                               {"model", network.name},
                               {"threads", settings.threads},
                               {"batch", network.batch},
                               {"size", network.size},
                               {"sparsity", c.storage.sparsity},
                               {"layout", c.storage.layout},
                               {"stored", c.trainee->stored()},
                               {"ms", time.median_ms},
                               {"dense_ms", dense_ms},
                               {"ratio", dense_ms / time.median_ms},
                               {"spread", time.spread},
                               {"repetitions", time.repetitions},
                               {"by_kind", to_json(c.trainee->ms_by_kind())},
                               {"instruction_set", active_instruction_set()}});
    if (c.storage.layout == kDense) json.set("convolutions_ms", convolutions_ms);
    report.add_row(std::move(json));
    table.rows.push_back(
        {fixed(100 * c.storage.sparsity, 1) + " %", c.storage.layout, c.trainee->stored(),
         fixed(time.median_ms, 1), fixed(100 * time.spread, 1) + " %",
         fixed(dense_ms / time.median_ms, 2) + "x", fixed(time.median_ms / convolutions_ms, 2)});
  }
  table.rows.push_back({"", "oneDNN's convolutions alone", "", fixed(convolutions_ms, 1), "",
                        fixed(dense_ms / convolutions_ms, 2) + "x", "1.00"});
  Report::print(kinds(network, all));
  report.summarize(std::move(table));
}

// What the command line asks for in place of the usual.
struct Request {
  std::vector<std::string> models;
  std::vector<double> batch, sparsities;

  std::vector<Option> options() {
    return {{.name = "--model", .help = "resnet20, resnet18, or both", .texts = &models},
            {.name = "--batch",
             .help = "Examples of a batch (default 128; resnet18: 32)",
             .numbers = &batch,
             .lowest = 2.0,
             .highest = 65536.0},
            {.name = "--sparsity",
             .help = "Measure these sparsities, as 0.9 0.95",
             .numbers = &sparsities,
             .lowest = 0.0,
             .highest = 0.999999}};
  }
};

MeasureOptions measuring(const Settings& settings) {
  MeasureOptions options{.repetitions = 15, .most_ms = 1e5, .runs = 1};
  if (settings.size == Size::Quick) options.repetitions = 5;
  if (settings.size == Size::Tiny) options.repetitions = 1;
  if (settings.repetitions > 0) options.repetitions = settings.repetitions;
  return options;
}

void run(Request request, const Settings& settings, Report& report) {
  const bool is_full = settings.size == Size::Full;
  if (request.models.empty()) {
    request.models = is_full ? std::vector<std::string>{"resnet20", "resnet18"}
                             : std::vector<std::string>{"resnet20"};
  }
  if (request.sparsities.empty()) {
    request.sparsities = is_full ? std::vector{0.8, 0.9, 0.95} : std::vector{0.9};
  }
  for (const std::string& name : request.models) {
    Network network = find_network(name);
    if (settings.size == Size::Tiny) network.size = 8, network.batch = 2;
    if (!request.batch.empty()) network.batch = std::llround(request.batch.back());
    compare(network, request.sparsities, measuring(settings), settings, report);
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  Request request;
  return run_program(
      argc, argv, "model", "Whole training steps of convolutional networks, sparse beside dense",
      [&](const Settings& settings, Report& report) { run(request, settings, report); },
      request.options());
}
