#include "model/transformer_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "common/row.h"
#include "lacuna/framework/core/error.h"
#include "model/kind_table.h"

namespace lacuna::bench {
namespace {

struct SparseModel {
  std::string name;  // "csr at 90.0 %"
  BlockWeights weights;

  std::string layout() const { return name.substr(0, name.find(" at ")); }
};

std::vector<SparseModel> contenders(const std::vector<double>& sparsities) {
  std::vector<SparseModel> all;
  for (const double sparsity : sparsities) {
    const std::string at = Config(sparsity).text();
    for (const char* layout : {"csr", "auto"}) {
      all.push_back({std::string(layout) + " at " + fixed(100 * sparsity, 1) + " %",
                     {.layout = layout,
                      .sparsity = sparsity,
                      .section = "{algorithm: static, sparsity: " + at + "}"}});
    }
  }
  all.push_back({"nm 2:4",
                 {.layout = "nm",
                  .sparsity = 0.5,
                  .section = "{algorithm: static, pattern: {type: nm, n: 2, m: 4}}"}});
  all.push_back({"nm 2:4 g8",
                 {.layout = "nm",
                  .sparsity = 0.5,
                  .section = "{algorithm: static, pattern: {type: nm, n: 2, m: 4, group: 8}}"}});
  all.push_back(
      {"block 16x16 at 90.0 %",
       {.layout = "block",
        .sparsity = 0.9,
        .section =
            "{algorithm: static, sparsity: 0.9, pattern: {type: block, rows: 16, cols: 16}}"}});
  return all;
}

// The first two losses must be those of the masked layout.
void check(const SparseModel& contender, const Transformer& transformer) {
  constexpr int64_t kExamples = 2;
  BlockWeights masked = contender.weights;
  masked.layout = "masked";
  std::array<float, 2> expected{};
  {
    TransformerTrainee reference(transformer, kExamples, masked);
    for (float& loss : expected) loss = reference.step();
  }
  TransformerTrainee checked(transformer, kExamples, contender.weights);
  for (const float loss : expected) {
    const float found = checked.step();
    if (std::abs(found - loss) <= 1e-3f * std::abs(loss)) continue;
    throw Error(contender.name + ": a loss is " + std::to_string(found) + ", in layout masked " +
                std::to_string(loss));
  }
}

}  // namespace

void compare_transformer(const Transformer& transformer, const std::vector<double>& sparsities,
                         const LayoutChoice& layouts, const MeasureOptions& options,
                         const Settings& settings, Report& report) {
  const MachineLimits limits = MachineLimits::measured(settings.size);
  KindTable kinds("ms of a step of " + transformer.title +
                  " by kind of work, and how much of the " + "processor's bound it reaches");
  Table table{.title = "Training steps of " + transformer.title + ", " +
                       std::to_string(transformer.layers) + " layers of " +
                       std::to_string(transformer.features) + " features, " +
                       std::to_string(transformer.batch) + " × " +
                       std::to_string(transformer.tokens()) +
                       " tokens, AdamW, the blocks' weights sparse, " + settings.threads_text(),
              .columns = {"sparsity", "layout", "stored as", "ms a step", "spread", "quiet",
                          "of L1-fed", "page faults", "over dense"}};
  const auto add_row = [&](const std::string& name, const std::string& layout, double sparsity,
                           const TransformerTrainee& trainee, const Timing& time, double dense_ms) {
    const Rate rate{.time = time, .operations = trainee.operations()};
    Config json = Config::map({{"workload", "model"},
                               {"model", transformer.name},
                               {"pass", "training"},
                               {"threads", settings.threads},
                               {"batch", transformer.batch},
                               {"tokens", transformer.tokens()},
                               {"layers", transformer.layers},
                               {"sparsity", sparsity},
                               {"layout", layout},
                               {"stored", trainee.stored()},
                               {"dense_ms", dense_ms},
                               {"ratio", dense_ms / time.median_ms},
                               {"by_kind", to_json(trainee.profile().ms_by_kind())},
                               {"bounds", to_json(trainee.profile().bound_ms_by_kind(limits))},
                               {"page_faults", trainee.profile().page_faults()}});
    kinds.add(name, trainee.profile().ms_by_kind(), trainee.profile().bound_ms_by_kind(limits));
    add_time(json, rate);
    report.add_row(std::move(json));
    table.rows.push_back(
        {fixed(100 * sparsity, 1) + " %", layout, trainee.stored(), fixed(time.median_ms, 1),
         fixed(100 * time.spread, 1) + " %", rate.quiet_text(), rate.share_text(),
         fixed(trainee.profile().page_faults(), 0), fixed(dense_ms / time.median_ms, 2) + "x"});
  };
  TransformerTrainee dense(transformer, transformer.batch, {});
  const auto work = [](const std::string& name, TransformerTrainee& trainee) {
    return Work{.name = name, .stages = {[&trainee] { trainee.step(); }}, .prepare = [&trainee] {
                  trainee.warm_up();
                }};
  };
  const Work dense_work = work(kDense, dense);
  const Timing alone = measure({dense_work}, options).at(kDense)[0];
  add_row(kDense, kDense, 0.0, dense, alone, alone.median_ms);
  for (const SparseModel& contender : contenders(sparsities)) {
    if (!layouts.has(contender.layout())) continue;
    check(contender, transformer);
    TransformerTrainee trainee(transformer, transformer.batch, contender.weights);
    const auto timings = measure({dense_work, work(contender.name, trainee)}, options);
    add_row(contender.name, contender.layout(), contender.weights.sparsity, trainee,
            timings.at(contender.name)[0], timings.at(kDense)[0].median_ms);
  }
  Report::print(kinds.table());
  report.summarize(std::move(table));
}

}  // namespace lacuna::bench
