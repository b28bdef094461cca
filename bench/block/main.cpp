// bench_block: forward and backward of one encoder block of BERT, sparse next to dense.
#include <algorithm>
#include <cmath>
#include <memory>

#include "block/encoder_block.h"
#include "common/operands.h"
#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/train/builtins.h"

namespace lacuna::bench {
namespace {

constexpr const char* kDense = "dense";
constexpr const char* kProducts = "onednn's products";

struct Contender {
  std::string name;
  BlockStorage storage;
  std::unique_ptr<EncoderBlock> block;
};

// The same values and masks must give the same output and gradient in layout masked.
void check(const std::string& name, const BlockSize& size, const BlockStorage& storage) {
  BlockSize few = size;
  few.examples = 1;
  few.tokens = std::min<int64_t>(size.tokens, 20);
  BlockStorage masked = storage;
  masked.layout = "masked";
  EncoderBlock found(few, storage), expected(few, masked);
  const Tensor x = random_tensor({1, few.tokens, few.features}, "x"),
               dy = random_tensor({1, few.tokens, few.features}, "dy");
  for (EncoderBlock* block : {&found, &expected}) {
    block->forward(x);
    block->backward(dy);
  }
  const auto require_near = [&](const Tensor& a, const Tensor& b, const char* what) {
    const std::vector<float> u = a.to_vector(), v = b.to_vector();
    float largest = 0.0f, difference = 0.0f;
    for (size_t i = 0; i < u.size(); ++i) {
      largest = std::max(largest, std::abs(v[i]));
      difference = std::max(difference, std::abs(u[i] - v[i]));
    }
    if (difference <= 1e-4f * largest) return;
    throw Error(name + ": the " + what + " differs from that in layout masked by " +
                std::to_string(difference) + ", the largest being " + std::to_string(largest));
  };
  require_near(found.output(), expected.output(), "output");
  require_near(found.input_gradient(), expected.input_gradient(), "input's gradient");
}

std::vector<Contender> contenders(const BlockSize& size, const std::vector<double>& sparsities) {
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const BlockStorage& storage) {
    if (!storage.section.empty()) check(name, size, storage);
    all.push_back({name, storage, std::make_unique<EncoderBlock>(size, storage)});
  };
  add(kDense, {});
  for (const double sparsity : sparsities) {
    const std::string at = Config(sparsity).text();
    for (const char* layout : {"csr", "auto"}) {
      add(std::string(layout) + " at " + fixed(100 * sparsity, 1) + " %",
          {.layout = layout,
           .sparsity = sparsity,
           .section = "{algorithm: static, sparsity: " + at + "}"});
    }
  }
  add("nm 2:4", {.layout = "nm",
                 .sparsity = 0.5,
                 .section = "{algorithm: static, pattern: {type: nm, n: 2, m: 4}}"});
  add("nm 2:4 g8", {.layout = "nm",
                    .sparsity = 0.5,
                    .section = "{algorithm: static, pattern: {type: nm, n: 2, m: 4, group: 8}}"});
  add("block 16x16 at 90.0 %",
      {.layout = "block",
       .sparsity = 0.9,
       .section =
           "{algorithm: static, sparsity: 0.9, pattern: {type: block, rows: 16, cols: 16}}"});
  return all;
}

Config to_json(const std::map<std::string, double>& ms_by_kind) {
  Config map = Config::map();
  for (const auto& [kind, ms] : ms_by_kind) map.set(kind, ms);
  return map;
}

MeasureOptions measuring(const Settings& settings) {
  MeasureOptions options{.repetitions = 11, .most_ms = 1e5, .runs = 1};
  if (settings.size == Size::Quick) options.repetitions = 5;
  if (settings.size == Size::Tiny) options.repetitions = 1;
  if (settings.repetitions > 0) options.repetitions = settings.repetitions;
  return options;
}

void run(std::vector<double> sparsities, const Settings& settings, Report& report) {
  BlockSize size;
  if (settings.size == Size::Tiny) {
    size = {.examples = 2, .tokens = 9, .features = 32, .hidden = 64, .heads = 2};
  }
  if (sparsities.empty()) {
    sparsities =
        settings.size == Size::Full ? std::vector{0.5, 0.8, 0.9, 0.95} : std::vector{0.9, 0.95};
  }
  register_builtins();
  const std::vector<Contender> all = contenders(size, sparsities);
  BlockProducts products(size);
  const Shape shape{size.examples, size.tokens, size.features};
  const Tensor x = random_tensor(shape, "x"), dy = random_tensor(shape, "dy");
  std::vector<Work> works = {
      {kProducts, {[&] { products.forward(); }, [&] { products.backward(); }}}};
  for (const Contender& c : all) {
    EncoderBlock& block = *c.block;
    works.push_back({c.name, {[&] { block.forward(x); }, [&] { block.backward(dy); }}});
  }
  const auto timings = measure(works, measuring(settings));

  Table table{.title = "Encoder block of BERT, " + std::to_string(size.examples) + " × " +
                       std::to_string(size.tokens) + " tokens, " + std::to_string(size.features) +
                       " features, " + std::to_string(size.heads) + " heads, " +
                       settings.threads_text(),
              .columns = {"contender", "stored as", "pass", "ms", "spread", "quiet", "of L1-fed",
                          "over dense", "over oneDNN's products"}};
  for (const auto& [stage, pass] :
       {std::pair{size_t{0}, "forward"}, {size_t{1}, "forward+backward"}}) {
    const double dense_ms = timings.at(kDense)[stage].median_ms;
    const Timing& raw = timings.at(kProducts)[stage];
    for (const Contender& c : all) {
      const Timing& time = timings.at(c.name)[stage];
      const Rate rate{.time = time, .operations = c.block->operations(stage == 1)};
      Config json = Config::map({{"workload", "block"},
                                 {"model", "bert_base"},
                                 {"threads", settings.threads},
                                 {"batch", size.examples},
                                 {"tokens", size.tokens},
                                 {"sparsity", c.storage.sparsity},
                                 {"layout", c.name.substr(0, c.name.find(" at "))},
                                 {"stored", c.block->stored()},
                                 {"pass", pass},
                                 {"dense_ms", dense_ms},
                                 {"products_ms", raw.median_ms},
                                 {"ratio", dense_ms / time.median_ms},
                                 {"by_kind", to_json(c.block->ms_by_kind())}});
      add_time(json, rate);
      report.add_row(std::move(json));
      table.rows.push_back({c.name, c.block->stored(), pass, fixed(time.median_ms, 1),
                            fixed(100 * time.spread, 1) + " %", rate.quiet_text(),
                            rate.share_text(), fixed(dense_ms / time.median_ms, 2) + "x",
                            fixed(raw.median_ms / time.median_ms, 2) + "x"});
    }
    table.rows.push_back({kProducts, "", pass, fixed(raw.median_ms, 1),
                          fixed(100 * raw.spread, 1) + " %", Rate{raw}.quiet_text(), "",
                          fixed(dense_ms / raw.median_ms, 2) + "x", "1.00x"});
  }
  report.summarize(std::move(table));
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  std::vector<double> sparsities;
  return run_program(
      argc, argv, "block", "Forward and backward of an encoder block of BERT, sparse next to dense",
      [&](const Settings& settings, Report& report) { run(sparsities, settings, report); },
      {{.name = "--sparsity",
        .help = "Measure these sparsities, as 0.9 0.95",
        .numbers = &sparsities,
        .lowest = 0.0,
        .highest = 0.999999}});
}
