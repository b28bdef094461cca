// bench_mlp: forward and backward of a transformer's MLP block, sparse next to dense.
#include <map>
#include <vector>

#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "mlp/contender.h"

namespace lacuna::bench {
namespace {

constexpr const char* kOpponent = "onednn";
constexpr const char* kDense = "dense";
constexpr double kSparsity = 0.5;

struct Contender {
  std::string name;
  MlpContenderPtr run;
};

std::vector<Contender> contenders(const MlpSize& size) {
  // Not a multiple of a slab; few, so that the reference is quick.
  const MlpOperands few = MlpOperands::random(std::min<int64_t>(size.tokens, 100), size.features);
  std::vector<Contender> all;
  const auto add = [&](const char* name, MlpContenderPtr run) {
    check(name, *run, few);
    all.push_back({name, std::move(run)});
  };
  add(kOpponent, make_mlp_opponent(size));
  for (const char* name :
       {kDense, "csr", "nm 2:4", "nm 2:4 transposable", "nm 2:4 g8", "block 16x16"}) {
    const Layout* layout = find_layout(name);
    if (layout == nullptr) throw Error(std::string("there is no layout '") + name + "'");
    add(name, make_mlp_model(size, *layout));
  }
  return all;
}

std::vector<Work> works(const std::vector<Contender>& contenders, const MlpOperands& operands) {
  std::vector<Work> works;
  for (const Contender& contender : contenders) {
    MlpContender& run = *contender.run;
    works.push_back({contender.name,
                     {[&] { run.forward(operands.x); }, [&] { run.backward(operands.dy); }},
                     [&] { run.change_weights(); }});
  }
  return works;
}

// A pass takes seconds.
MeasureOptions measuring(const Settings& settings) {
  MeasureOptions options{.repetitions = settings.size == Size::Tiny ? 1 : 3, .runs = 1};
  if (settings.repetitions > 0) options.repetitions = settings.repetitions;
  return options;
}

void run(const Settings& settings, Report& report) {
  MlpSize size{.tokens = 13008, .features = 1024, .hidden = 4096};
  if (settings.size == Size::Quick) size.tokens = 2048;
  if (settings.size == Size::Tiny) size = {.tokens = 67, .features = 48, .hidden = 64};
  const std::vector<Contender> all = contenders(size);
  const MlpOperands operands = MlpOperands::random(size.tokens, size.features);
  const auto timings = measure(works(all, operands), measuring(settings));

  const std::string shape = std::to_string(size.features) + " → " + std::to_string(size.hidden) +
                            " → " + std::to_string(size.features);
  Table table{.title = "MLP block of a transformer, " + std::to_string(size.tokens) + " tokens, " +
                       shape + " with GELU, half of the weights, " + settings.threads_text(),
              .columns = {"contender", "pass", "ms", "spread", "quiet", "of L1-fed",
                          "GFLOP/s dense", "over dense", "over " + std::string(kOpponent)}};
  for (const Contender& contender : all) {
    for (const auto& [stage, pass] :
         {std::pair{size_t{0}, "forward"}, {size_t{1}, "forward+backward"}}) {
      const Timing& time = timings.at(contender.name)[stage];
      const double dense_ms = timings.at(kDense)[stage].median_ms;
      const double opponent_ms = timings.at(kOpponent)[stage].median_ms;
      const double of_dense = (stage == 0 ? 4.0 : 12.0) * static_cast<double>(size.tokens) *
                              static_cast<double>(size.features * size.hidden);
      const double gflops = of_dense / time.median_ms / 1e6;
      const bool is_dense = contender.name == kOpponent || contender.name == kDense;
      const Rate rate{.time = time, .operations = is_dense ? of_dense : kSparsity * of_dense};
      Config json = Config::map({{"workload", "mlp"},
                                 {"batch", size.tokens},
                                 {"in", size.features},
                                 {"hidden", size.hidden},
                                 {"threads", settings.threads},
                                 {"sparsity", is_dense ? 0.0 : kSparsity},
                                 {"layout", contender.name},
                                 {"pass", pass},
                                 {"dense_ms", dense_ms},
                                 {"ratio", dense_ms / time.median_ms},
                                 {"onednn_ms", opponent_ms},
                                 {"gflops_dense", gflops}});
      add_time(json, rate);
      report.add_row(std::move(json));
      table.rows.push_back({contender.name, pass, fixed(time.median_ms, 1),
                            fixed(100 * time.spread, 1) + " %", rate.quiet_text(),
                            rate.share_text(), fixed(gflops, 1),
                            fixed(dense_ms / time.median_ms, 2) + "x",
                            fixed(opponent_ms / time.median_ms, 2) + "x"});
    }
  }
  report.summarize(std::move(table));
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(
      argc, argv, "mlp", "Forward and backward of a transformer's MLP block", lacuna::bench::run);
}
