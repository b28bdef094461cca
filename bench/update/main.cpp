// bench_update: what a topology update costs, next to the training steps between two of them.
#include <algorithm>
#include <string>
#include <string_view>

#include "common/dense_opponent.h"
#include "common/layer_trainer.h"
#include "common/operands.h"
#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::bench {
namespace {

constexpr int64_t kBatch = 128;
constexpr int64_t kNever = int64_t{1} << 40;

LayerOptions layer(int64_t side, const std::string& algorithm, const std::string& layout,
                   double sparsity, int64_t freq) {
  return {
      .side = side,
      .batch = kBatch,
      .sparsity = {.algorithm = algorithm, .layout = layout, .sparsity = sparsity, .freq = freq}};
}

// Two updates must lead to the masks that layout masked comes to, but for scores within rounding.
void check(const std::string& algorithm, int64_t side, double sparsity) {
  LayerTrainer csr(layer(side, algorithm, "csr", sparsity, 1));
  LayerTrainer masked(layer(side, algorithm, "masked", sparsity, 1));
  const BitMask first = csr.weight().pattern()->mask();
  for (int step = 0; step < 2; ++step) {
    for (LayerTrainer* trainer : {&csr, &masked}) {
      trainer->forward_backward();
      trainer->update();
    }
  }
  const BitMask found = csr.weight().pattern()->mask(),
                expected = masked.weight().pattern()->mask();
  int64_t differ = 0, moved = 0;
  found.for_each([&](int64_t i) {
    differ += expected.test(i) ? 0 : 1;
    moved += first.test(i) ? 0 : 1;
  });
  if (found.count() != expected.count() || differ > 2 + found.count() / 1000 || moved == 0) {
    throw Error(algorithm + ": " + std::to_string(differ) + " of " + std::to_string(found.count()) +
                " positions differ from those of layout masked, " + std::to_string(moved) +
                " have moved");
  }
}

struct UpdateCost {
  double step_ms = 0.0;   // a training step of the layer without an update
  Timing update;          // what an update adds to one; the spread is that of the step with it
  double dense_ms = 0.0;  // a dense weight-gradient product

  double share(int64_t freq) const {
    return update.median_ms / (static_cast<double>(freq) * step_ms + update.median_ms);
  }
};

// An update is the difference of two steps, so that all it causes counts: the collected gradient,
// the moved arrays, and the index that the next backward builds.
UpdateCost measure_update(const std::string& algorithm, int64_t side, double sparsity,
                          const MeasureOptions& options) {
  LayerTrainer updating(layer(side, algorithm, "csr", sparsity, 1));
  LayerTrainer plain(layer(side, algorithm, "csr", sparsity, kNever));
  const Tensor x = random_tensor(Shape{kBatch, side}, "x");
  const Tensor dy = random_tensor(Shape{kBatch, side}, "dy");
  Tensor dw = Tensor::zeros(Shape{side, side});
  const auto step = [](LayerTrainer& trainer) {
    return [&trainer] {
      trainer.forward_backward();
      trainer.update();
    };
  };
  const auto timings = measure({{"updating", {step(updating)}},
                                {"plain", {step(plain)}},
                                {"dense", {[&] { opponent_weight_gradient(dy, x, dw); }}}},
                               options);
  const Timing &with = timings.at("updating")[0], &without = timings.at("plain")[0];
  Timing update = with;
  update.median_ms -= without.median_ms;
  update.mean_ms -= without.mean_ms;
  update.busy_ms = std::max(update.busy_ms - without.busy_ms, 0.0);
  return {
      .step_ms = without.median_ms, .update = update, .dense_ms = timings.at("dense")[0].median_ms};
}

void run(const Settings& settings, Report& report) {
  std::vector<int64_t> sides = {1024, 4096};
  std::vector<double> sparsities = {0.5, 0.8, 0.9, 0.95, 0.98, 0.99};
  if (settings.size == Size::Quick) {
    sides = {1024};
    sparsities = {0.5, 0.9, 0.99};
  } else if (settings.size == Size::Tiny) {
    sides = {48};
    sparsities = {0.9};
  }
  for (const int64_t side : sides) {
    const std::string name = std::to_string(side) + " → " + std::to_string(side);
    Table table{.title = "A topology update of a linear layer " + name + " in layout csr, batch " +
                         std::to_string(kBatch) + ", Adam, a drop fraction of 0.3, " +
                         settings.threads_text(),
                .columns = {"algorithm", "sparsity", "ms an update", "spread", "quiet", "ms a step",
                            "share of training at freq 100", "in dense weight-gradient products"}};
    for (const char* algorithm : {"set", "rigl"}) {
      for (const double sparsity : sparsities) {
        check(algorithm, side, sparsity);
        const UpdateCost cost = measure_update(algorithm, side, sparsity, settings.measuring());
        // RigL's dense gradient is a product; SET multiplies nothing.
        const bool multiplies = std::string_view(algorithm) == "rigl";
        const Rate rate{
            .time = cost.update,
            .operations = multiplies ? 2.0 * static_cast<double>(kBatch * side * side) : 0.0};
        Config json = Config::map({{"workload", "update"},
                                   {"algorithm", algorithm},
                                   {"batch", kBatch},
                                   {"in", side},
                                   {"out", side},
                                   {"threads", settings.threads},
                                   {"sparsity", sparsity},
                                   {"layout", "csr"},
                                   {"step_ms", cost.step_ms},
                                   {"share_at_freq_100", cost.share(100)},
                                   {"dense_ms", cost.dense_ms},
                                   {"dense_products", cost.update.median_ms / cost.dense_ms}});
        add_time(json, rate);
        report.add_row(std::move(json));
        table.rows.push_back({algorithm, fixed(100 * sparsity, 0) + " %",
                              fixed(cost.update.median_ms, 3),
                              fixed(100 * cost.update.spread, 1) + " %", rate.quiet_text(),
                              fixed(cost.step_ms, 3), fixed(100 * cost.share(100), 2) + " %",
                              fixed(cost.update.median_ms / cost.dense_ms, 2)});
      }
    }
    report.summarize(std::move(table));
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(argc, argv, "update",
                                    "What topology updates cost next to the steps between them",
                                    lacuna::bench::run);
}
