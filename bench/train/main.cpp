// bench_train: whole training steps of MLPs on images of digits, sparse next to dense.
#include <cmath>
#include <map>

#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/error.h"
#include "train/trainee.h"

namespace lacuna::bench {
namespace {

using Hidden = std::vector<int64_t>;

struct Contender {
  std::string name;
  SparsityCase sparsity;
  double dropout = 0.0;
  std::unique_ptr<Trainee> trainee;
};

std::string network_name(const Hidden& hidden) {
  std::string name = "784";
  for (const int64_t size : hidden) name += "-" + std::to_string(size);
  return name + "-10";
}

// The first losses must be those of the masked layout.
void check(const std::string& name, const TrainingData& data, const Hidden& hidden,
           SparsityCase sparsity, double dropout) {
  Trainee trainee(data.images, hidden, sparsity, dropout);
  sparsity.layout = "masked";
  Trainee reference(data.images, hidden, sparsity, dropout);
  for (int step = 0; step < 3; ++step) {
    const float found = trainee.step(), expected = reference.step();
    if (!(std::abs(found - expected) <= 1e-4f * std::abs(expected))) {
      throw Error(name + ": the loss of step " + std::to_string(step) + " is " +
                  std::to_string(found) + ", in layout masked " + std::to_string(expected));
    }
  }
}

// What a dropout of 0.5 adds to a contender's name.
std::string dropout_suffix(double dropout) {
  return dropout > 0.0 ? ", dropout " + fixed(dropout, 2) : "";
}

// Without dropout, and with it unless it is 0.
void add_contender(const std::string& name, const SparsityCase& which, double dropout,
                   const TrainingData& data, const Hidden& hidden, std::vector<Contender>& into) {
  for (const double p : dropout > 0.0 ? std::vector{0.0, dropout} : std::vector{0.0}) {
    const std::string full_name = name + dropout_suffix(p);
    if (!which.algorithm.empty()) check(full_name, data, hidden, which, p);
    into.push_back({full_name, which, p, std::make_unique<Trainee>(data.images, hidden, which, p)});
  }
}

std::vector<Contender> contenders(const TrainingData& data, const Hidden& hidden, double sparsity,
                                  double dropout) {
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const SparsityCase& which) {
    add_contender(name, which, dropout, data, hidden, all);
  };
  add("dense", {});
  for (const char* algorithm : {"static", "rigl"}) {
    for (const char* layout : {"csr", "auto"}) {
      add(std::string(algorithm) + ", " + layout,
          {.algorithm = algorithm, .layout = layout, .sparsity = sparsity});
    }
  }
  return all;
}

// A repetition is a block of steps; all blocks together are an epoch in a full run.
MeasureOptions measuring(const Settings& settings) {
  MeasureOptions options{.repetitions = 15, .most_ms = 1e9, .runs = 32};
  if (settings.size == Size::Quick) options.repetitions = 7;
  if (settings.size == Size::Tiny) options = {.repetitions = 1, .most_ms = 1e9, .runs = 2};
  if (settings.repetitions > 0) options.repetitions = settings.repetitions;
  return options;
}

// Training that selects its masks from dense weights at every step.
std::vector<Contender> semi_sparse_contenders(const TrainingData& data, const Hidden& hidden,
                                              double dropout) {
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const SparsityCase& which) {
    add_contender(name, which, dropout, data, hidden, all);
  };
  add("dense", {});
  for (const bool transposable : {false, true}) {
    const std::string layout = transposable ? "nm 2:4 transposable" : "nm 2:4";
    const Config pattern = Config::map(
        {{"type", "nm"}, {"n", int64_t{2}}, {"m", int64_t{4}}, {"transposable", transposable}});
    add("semi_sparse, " + layout, {.algorithm = "semi_sparse",
                                   .layout = layout,
                                   .sparsity = 0.5,
                                   .freq = 1,
                                   .pattern = pattern});
  }
  return all;
}

// Measures one network's contenders, and returns the summary's lines.
std::vector<std::vector<std::string>> compare(const std::vector<Contender>& all,
                                              const TrainingData& data, const Hidden& hidden,
                                              double sparsity, const Settings& settings,
                                              Report& report) {
  std::vector<Work> works;
  for (const Contender& c : all) {
    works.push_back({c.name, {[&trainee = *c.trainee] { trainee.step(); }}});
  }
  const auto timings = measure(works, measuring(settings));
  std::vector<std::vector<std::string>> lines;
  for (const Contender& c : all) {
    const std::string suffix = dropout_suffix(c.dropout);
    const Timing& time = timings.at(c.name)[0];
    const Timing& dense = timings.at("dense" + suffix)[0];
    const Timing& plain = timings.at(c.name.substr(0, c.name.size() - suffix.size()))[0];
    const double steps = static_cast<double>(c.trainee->steps_per_epoch());
    const bool is_dense = c.sparsity.algorithm.empty();
    const std::string layout = is_dense ? "dense" : c.sparsity.layout;
    const Rate rate{.time = time, .operations = c.trainee->operations()};
    Config json = Config::map({{"workload", "train"},
                               {"network", network_name(hidden)},
                               {"data", data.name},
                               {"batch", 128},
                               {"threads", settings.threads},
                               {"sparsity", sparsity},
                               {"algorithm", is_dense ? "dense" : c.sparsity.algorithm},
                               {"layout", layout},
                               {"stored", c.trainee->layouts()},
                               {"pass", "step"},
                               {"dropout", c.dropout},
                               {"of_step_without_dropout", time.median_ms / plain.median_ms},
                               {"dense_ms", dense.median_ms},
                               {"ratio", dense.median_ms / time.median_ms},
                               {"epoch_seconds", time.mean_ms * steps / 1e3},
                               {"dense_epoch_seconds", dense.mean_ms * steps / 1e3}});
    add_time(json, rate);
    report.add_row(std::move(json));
    lines.push_back(
        {fixed(100 * sparsity, 0) + " %", c.name, c.trainee->layouts(), fixed(time.median_ms, 3),
         fixed(100 * time.spread, 1) + " %", rate.quiet_text(), rate.share_text(),
         fixed(dense.median_ms / time.median_ms, 2), fixed(time.median_ms / plain.median_ms, 2),
         fixed(time.mean_ms * steps / 1e3, 3)});
  }
  return lines;
}

// What the command line asks for in place of the usual.
struct TrainRequest {
  std::vector<double> sparsities, dropout;

  std::vector<Option> options() {
    return {{.name = "--dropout",
             .help = "Measure each also with dropout of this probability after each hidden layer",
             .numbers = &dropout,
             .lowest = 0.0,
             .highest = 0.99},
            {.name = "--sparsity",
             .help = "Measure these sparsities, as 0.9 0.95",
             .numbers = &sparsities,
             .lowest = 0.0,
             .highest = 0.999999}};
  }
};

void run(const TrainRequest& request, const Settings& settings, Report& report) {
  std::vector<Hidden> networks = {{300, 100}, {1024, 1024}};
  std::vector<double> sparsities = {0.5, 0.8, 0.9, 0.95, 0.98, 0.99};
  if (settings.size == Size::Quick) sparsities = {0.5, 0.9, 0.99};
  if (settings.size == Size::Tiny) {
    networks = {{32, 16}};
    sparsities = {0.9};
  }
  if (!request.sparsities.empty()) sparsities = request.sparsities;
  const double dropout = request.dropout.empty() ? 0.0 : request.dropout.back();
  const TrainingData data = load_training_data(settings.size == Size::Tiny ? 300 : 60000);
  for (const Hidden& hidden : networks) {
    Table table{.title = "Training steps of " + network_name(hidden) + " on " + data.name +
                         ", batch 128, Adam, hidden weights sparse, everything counted, " +
                         settings.threads_text(),
                .columns = {"sparsity", "training", "stored as", "ms a step", "spread", "quiet",
                            "of L1-fed", "over dense", "of no dropout", "s an epoch"}};
    const auto add = [&](const std::vector<Contender>& all, double sparsity) {
      const auto lines = compare(all, data, hidden, sparsity, settings, report);
      table.rows.insert(table.rows.end(), lines.begin(), lines.end());
    };
    for (const double sparsity : sparsities) {
      add(contenders(data, hidden, sparsity, dropout), sparsity);
    }
    add(semi_sparse_contenders(data, hidden, dropout), 0.5);
    report.summarize(std::move(table));
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  TrainRequest request;
  return run_program(
      argc, argv, "train", "Whole training steps of MLPs, sparse next to dense",
      [&](const Settings& settings, Report& report) { run(request, settings, report); },
      request.options());
}
