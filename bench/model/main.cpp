// bench_model: whole training steps of convolutional networks and transformers, and inference of
// the former, sparse next to dense.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "model/convolutions.h"
#include "model/kind_table.h"
#include "model/layout_choice.h"
#include "model/trainee.h"
#include "model/transformer_comparison.h"

namespace lacuna::bench {
namespace {

/// What is timed of a network.
enum class Pass { Training, Inference };

const char* to_string(Pass pass) { return pass == Pass::Training ? "training" : "inference"; }

struct Contender {
  std::string name;
  Storage storage;
  std::unique_ptr<ImageNetwork> network;
};

std::unique_ptr<ImageNetwork> make_network(Pass pass, const Network& network, int64_t examples,
                                           const Storage& storage) {
  if (pass == Pass::Training) return std::make_unique<ImageTrainee>(network, examples, storage);
  return std::make_unique<ImagePredictor>(network, examples, storage);
}

// The first losses, or the outputs, of a few examples must be those of the masked layout.
void check(const std::string& name, Pass pass, const Network& network, Storage storage) {
  constexpr int64_t kExamples = 4;
  const auto checked = make_network(pass, network, kExamples, storage);
  storage.layout = "masked";
  const auto reference = make_network(pass, network, kExamples, storage);
  for (int run = 0; run < 2; ++run) {
    const float found = checked->result(), expected = reference->result();
    if (!(std::abs(found - expected) <= 1e-3f * std::abs(expected))) {
      throw Error(name + ": the result of run " + std::to_string(run) + " is " +
                  std::to_string(found) + ", in layout masked " + std::to_string(expected));
    }
  }
}

std::vector<Contender> contenders(Pass pass, const Network& network,
                                  const std::vector<double>& sparsities,
                                  const LayoutChoice& layouts) {
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const Storage& storage) {
    if (storage.layout != kDense) check(name, pass, network, storage);
    all.push_back({name, storage, make_network(pass, network, network.batch, storage)});
  };
  add(kDense, {});
  for (const double sparsity : sparsities) {
    for (const char* layout : {"csr", "auto"}) {
      if (!layouts.has(layout)) continue;
      add(std::string(layout) + " at " + fixed(100 * sparsity, 1) + " %",
          {.layout = layout, .sparsity = sparsity});
    }
  }
  return all;
}

Table results(Pass pass, const Network& network, const Settings& settings) {
  const bool is_training = pass == Pass::Training;
  return {.title = (is_training ? "Training steps of " : "Inference of ") + network.title +
                   ", batch " + std::to_string(network.batch) + ", images of " +
                   std::to_string(network.size) +
                   (is_training ? ", SGD with momentum" : ", batch_norm folded") +
                   ", all convolutions but the first" +
                   (network.stays_dense.empty() ? "" : " and any " + network.stays_dense) +
                   " sparse, " + settings.threads_text(),
          .columns = {"sparsity", "layout", "stored as", is_training ? "ms a step" : "ms a batch",
                      "spread", "quiet", "of L1-fed", "page faults", "over dense",
                      "over oneDNN's convolutions"}};
}

void compare(Pass pass, const Network& network, const std::vector<double>& sparsities,
             const LayoutChoice& layouts, const MeasureOptions& options, const Settings& settings,
             Report& report) {
  const std::vector<Contender> all = contenders(pass, network, sparsities, layouts);
  constexpr std::array kForward = {Product::Forward};
  const ConvolutionSum convolutions(all.front().network->model(), network.batch,
                                    pass == Pass::Training ? std::span<const Product>(kProducts)
                                                           : std::span<const Product>(kForward));
  std::vector<Work> works = convolutions.works();
  for (const Contender& c : all) {
    works.push_back({.name = c.name,
                     .stages = {[&timed = *c.network] { timed.run(); }},
                     .prepare = [&timed = *c.network] { timed.warm_up(); }});
  }
  const auto timings = measure(works, options);
  const double dense_ms = timings.at(kDense)[0].median_ms;
  const double convolutions_ms = convolutions.best_ms(timings);
  const MachineLimits limits = MachineLimits::measured(settings.size);
  KindTable kinds("ms of a step of " + network.title + " by kind of work, and how much of the " +
                  "processor's bound it reaches");
  Table table = results(pass, network, settings);
  for (const Contender& c : all) {
    const Timing& time = timings.at(c.name)[0];
    const MsByKind ms = c.network->profile().ms_by_kind(),
                   bounds = c.network->profile().bound_ms_by_kind(limits);
    kinds.add(c.name, ms, bounds);
    Config json = Config::map({{"workload", "model"},
                               {"model", network.name},
                               {"pass", to_string(pass)},
                               {"threads", settings.threads},
                               {"batch", network.batch},
                               {"size", network.size},
                               {"sparsity", c.storage.sparsity},
                               {"layout", c.storage.layout},
                               {"stored", c.network->stored()},
                               {"dense_ms", dense_ms},
                               {"ratio", dense_ms / time.median_ms},
                               {"by_kind", to_json(ms)},
                               {"bounds", to_json(bounds)},
                               {"page_faults", c.network->profile().page_faults()}});
    const Rate rate{.time = time, .operations = c.network->operations(pass == Pass::Training)};
    add_time(json, rate);
    if (c.storage.layout == kDense) json.set("convolutions_ms", convolutions_ms);
    report.add_row(std::move(json));
    table.rows.push_back(
        {fixed(100 * c.storage.sparsity, 1) + " %", c.storage.layout, c.network->stored(),
         fixed(time.median_ms, 1), fixed(100 * time.spread, 1) + " %", rate.quiet_text(),
         rate.share_text(), fixed(c.network->profile().page_faults(), 0),
         fixed(dense_ms / time.median_ms, 2) + "x", fixed(time.median_ms / convolutions_ms, 2)});
  }
  table.rows.push_back({"", "oneDNN's convolutions alone", "", fixed(convolutions_ms, 1), "", "",
                        "", "", fixed(dense_ms / convolutions_ms, 2) + "x", "1.00"});
  if (pass == Pass::Training) Report::print(kinds.table());
  report.summarize(std::move(table));
}

// What the command line asks for in place of the usual.
struct Request {
  std::vector<std::string> models, passes, layouts;
  std::vector<double> batch, sparsities, layers, dropout;

  std::vector<Option> options() {
    return {
        {.name = "--model",
         .help = "resnet20, resnet18 (default both), wrn16_2, gpt_mini, gpt_4x192, gpt_6x384, "
                 "bert_base, vit_s, vit_cifar",
         .texts = &models},
        {.name = "--layers",
         .help = "Layers of the transformers (default their own; bert_base, vit_s --quick: 2)",
         .numbers = &layers,
         .lowest = 1.0,
         .highest = 96.0},
        {.name = "--dropout",
         .help = "Probability of dropout in the transformers (default 0)",
         .numbers = &dropout,
         .lowest = 0.0,
         .highest = 0.99},
        {.name = "--pass",
         .help = "training, inference (at batch 1, too; not of transformers), or both (default "
                 "training)",
         .texts = &passes},
        {.name = "--layout",
         .help = "Measure these layouts next to dense: csr, auto, and of transformers \"nm 2:4\", "
                 "\"nm 2:4 g8\", \"block 16x16\" (default all)",
         .texts = &layouts},
        {.name = "--batch",
         .help = "Examples of a batch (default 128; resnet18: 32; transformers: their own)",
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

Pass find_pass(const std::string& name) {
  if (name == "training") return Pass::Training;
  if (name == "inference") return Pass::Inference;
  const std::vector<std::string> names = {"training", "inference"};
  throw ConfigError("--pass: there is no pass '" + name + "'; " + suggest_name(name, names));
}

void run_transformer(Transformer transformer, const Request& request, const Settings& settings,
                     Report& report) {
  const bool is_deep = transformer.layers > 6;
  if (settings.size == Size::Quick && is_deep) transformer.layers = 2;
  if (settings.size == Size::Tiny) transformer = tiny(transformer);
  if (!request.layers.empty()) transformer.layers = std::llround(request.layers.back());
  if (!request.batch.empty()) transformer.batch = std::llround(request.batch.back());
  if (!request.dropout.empty()) transformer.dropout = request.dropout.back();
  std::vector<double> sparsities = request.sparsities;
  if (sparsities.empty()) {
    sparsities = settings.size == Size::Full ? std::vector{0.5, 0.8, 0.9, 0.95} : std::vector{0.9};
  }
  compare_transformer(transformer, sparsities, LayoutChoice(request.layouts), measuring(settings),
                      settings, report);
}

void run(Request request, const Settings& settings, Report& report) {
  const bool is_full = settings.size == Size::Full;
  if (request.models.empty()) {
    request.models = is_full ? std::vector<std::string>{"resnet20", "resnet18"}
                             : std::vector<std::string>{"resnet20"};
    if (settings.size == Size::Tiny) {
      request.models.push_back("wrn16_2");
      request.models.insert(request.models.end(), transformer_names().begin(),
                            transformer_names().end());
    }
  }
  const bool asks_for_inference = std::ranges::count(request.passes, "inference") > 0;
  if (request.passes.empty()) {
    request.passes = {to_string(Pass::Training)};
    if (settings.size == Size::Tiny) request.passes.push_back(to_string(Pass::Inference));
  }
  const LayoutChoice layouts(request.layouts);
  std::vector<Pass> passes;
  for (const std::string& name : request.passes) passes.push_back(find_pass(name));
  for (const std::string& name : request.models) {
    if (const auto transformer = find_transformer(name)) {
      if (asks_for_inference) {
        throw ConfigError("--pass: inference is measured of convolutional networks, not of " +
                          name);
      }
      run_transformer(*transformer, request, settings, report);
      continue;
    }
    Network network = find_network(name);
    if (settings.size == Size::Tiny) network.size = 8, network.batch = 2;
    if (!request.batch.empty()) network.batch = std::llround(request.batch.back());
    const std::vector<double> sparsities =
        request.sparsities.empty() ? (is_full ? std::vector{0.8, 0.9, 0.95} : std::vector{0.9})
                                   : request.sparsities;
    for (const Pass pass : passes) {
      compare(pass, network, sparsities, layouts, measuring(settings), settings, report);
      if (pass == Pass::Training) continue;
      Network single = network;
      single.batch = 1;
      compare(pass, single, sparsities, layouts, measuring(settings), settings, report);
    }
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  Request request;
  return run_program(
      argc, argv, "model",
      "Training steps of convolutional networks and transformers, sparse next to dense",
      [&](const Settings& settings, Report& report) { run(request, settings, report); },
      request.options());
}
