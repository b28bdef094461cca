// bench_linear: the three products of a linear layer, every contender beside raw oneDNN.
#include <algorithm>
#include <array>
#include <map>

#include "common/program.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "linear/comparison.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

using Dimensions = std::array<int64_t, 3>;  // batch, in, out

std::string describe(const LinearComparison& c) {
  return "batch " + std::to_string(c.batch) + ", " + std::to_string(c.in) + " → " +
         std::to_string(c.out);
}

double products(const LinearRow& row) { return row.pass == kForward ? 1.0 : 3.0; }

// Operations a second over `weights` of the weight's positions.
double gflops(const LinearComparison& c, const LinearRow& row, int64_t weights) {
  return 2.0 * products(row) * static_cast<double>(c.batch) * static_cast<double>(weights) /
         row.time.median_ms / 1e6;
}

Table details(const LinearComparison& c, const Settings& settings) {
  Table table{.title = "linear, " + describe(c) + ", sparsity " + fixed(c.sparsity, 2) + " (" +
                       std::to_string(c.row("csr", kBoth).nnz) + " nonzeros), " +
                       settings.threads_text(),
              .columns = {"contender", "pass", "ms", "spread", "GFLOP/s nonzeros", "GFLOP/s dense",
                          "over dense", "predicted ms"}};
  for (const LinearRow& row : c.rows) {
    table.rows.push_back({row.layout, row.pass, fixed(row.time.median_ms, 4),
                          fixed(100 * row.time.spread, 1) + " %", fixed(gflops(c, row, row.nnz), 1),
                          fixed(gflops(c, row, c.in * c.out), 1),
                          fixed(row.dense_ms / row.time.median_ms, 2) + "x",
                          row.predicted_ms ? fixed(*row.predicted_ms, 4) : ""});
  }
  return table;
}

void add_rows(const LinearComparison& c, const Settings& settings, Report& report) {
  for (const LinearRow& row : c.rows) {
    Config json = Config::map({{"workload", "linear"},
                               {"batch", c.batch},
                               {"in", c.in},
                               {"out", c.out},
                               {"threads", settings.threads},
                               {"sparsity", c.sparsity},
                               {"layout", row.layout},
                               {"pass", row.pass},
                               {"ms", row.time.median_ms},
                               {"dense_ms", row.dense_ms},
                               {"ratio", row.dense_ms / row.time.median_ms},
                               {"spread", row.time.spread},
                               {"repetitions", row.time.repetitions},
                               {"pattern", row.pattern},
                               {"activations", row.activations},
                               {"nnz", row.nnz},
                               {"gflops_nonzeros", gflops(c, row, row.nnz)},
                               {"gflops_dense", gflops(c, row, c.in * c.out)},
                               {"instruction_set", active_instruction_set()}});
    if (row.predicted_ms) json.set("predicted_ms", *row.predicted_ms);
    if (row.layout == "auto") json.set("chosen", std::string(c.choice.layout->name()));
    report.add_row(std::move(json));
  }
}

// A line for each sparsity of one shape: how many times faster than the opponent.
Table summary(const std::vector<const LinearComparison*>& comparisons) {
  Table table{.title = "Forward + backward of a linear layer, " + describe(*comparisons.front()) +
                       ": times faster than the dense opponent",
              .columns = {"sparsity", "opponent, ms", "dense", "masked", "csr", "csr, forward only",
                          "csr, skewed", "csr, row-major", "auto", "Eigen sparse"}};
  for (const LinearComparison* c : comparisons) {
    const auto ratio = [&](const char* layout, const char* pass = kBoth) {
      const LinearRow& row = c->row(layout, pass);
      return fixed(row.dense_ms / row.time.median_ms, 2);
    };
    table.rows.push_back(
        {fixed(100 * c->sparsity, 0) + " %", fixed(c->row(kOpponent, kBoth).time.median_ms, 2),
         ratio("dense"), ratio("masked"), ratio("csr"), ratio("csr", kForward), ratio("csr-skewed"),
         ratio("csr-row-major"), ratio("auto") + " (" + std::string(c->choice.layout->name()) + ")",
         ratio("eigen-sparse")});
  }
  return table;
}

// What layout auto reckoned with: a whole step of the layer's weight.
Table predictions(const std::vector<const LinearComparison*>& comparisons) {
  Table table{
      .title =
          "A step of that weight (three products, masking, Adam) in ms, as layout "
          "auto's cost model predicts it and as measured",
      .columns = {"sparsity", "masked, predicted", "masked", "csr, predicted", "csr", "chosen"}};
  for (const LinearComparison* c : comparisons) {
    table.rows.push_back(
        {fixed(100 * c->sparsity, 0) + " %", fixed(c->choice.costs.masked_ms, 4),
         fixed(c->row("masked", kStep).time.median_ms, 4), fixed(c->choice.costs.compressed_ms, 4),
         fixed(c->row("csr", kStep).time.median_ms, 4), std::string(c->choice.layout->name())});
  }
  return table;
}

void run(const Settings& settings, Report& report) {
  std::printf("Eigen's sparse product: %s\n", eigen_version().c_str());
  std::vector<Dimensions> shapes = {{128, 1024, 1024}};
  std::vector<double> sparsities = {0.5, 0.9, 0.99, 0.8, 0.95, 0.98};  // quick: in this order
  if (settings.size == Size::Full) {
    shapes = {{128, 1024, 1024}, {128, 4096, 4096}, {2048, 384, 1536}, {1, 1024, 1024}};
  } else if (settings.size == Size::Tiny) {
    shapes = {{67, 48, 40}, {1, 40, 48}};
    sparsities = {0.9};
  }
  constexpr double kQuickSeconds = 38.0;                     // after which nothing more is begun
  std::map<size_t, std::vector<LinearComparison>> measured;  // by shape
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const auto [batch, in, out] = shapes[shape];
    for (const double sparsity : sparsities) {
      if (settings.size == Size::Quick && settings.elapsed_seconds() > kQuickSeconds) break;
      const LinearComparison comparison = compare(batch, in, out, sparsity, settings.measuring());
      Report::print(details(comparison, settings));
      std::printf("auto: %s\n", comparison.choice.reason.c_str());
      add_rows(comparison, settings, report);
      measured[shape].push_back(comparison);
    }
  }
  for (auto& [shape, comparisons] : measured) {
    std::vector<const LinearComparison*> sorted;
    for (const LinearComparison& c : comparisons) sorted.push_back(&c);
    std::ranges::sort(sorted, {}, [](const LinearComparison* c) { return c->sparsity; });
    report.summarize(summary(sorted));
    report.summarize(predictions(sorted));
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(argc, argv, "linear",
                                    "Forward and backward of a linear layer beside raw oneDNN",
                                    lacuna::bench::run);
}
