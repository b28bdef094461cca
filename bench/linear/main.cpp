// bench_linear: the three products of a linear layer, every contender next to raw oneDNN.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "common/program.h"
#include "common/request.h"
#include "common/row.h"
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

Rate rate(const LinearComparison& c, const LinearRow& row) {
  return {.time = row.time,
          .operations = 2.0 * products(row) * static_cast<double>(c.batch * row.nnz)};
}

// As if the weight were dense.
double gflops_dense(const LinearComparison& c, const LinearRow& row) {
  return 2.0 * products(row) * static_cast<double>(c.batch * c.in * c.out) / row.time.median_ms /
         1e6;
}

Table details(const LinearComparison& c, const Settings& settings) {
  Table table{.title = "linear, " + describe(c) + ", sparsity " + fixed(c.sparsity, 2) + " (" +
                       std::to_string(c.row("csr", kBoth).nnz) + " nonzeros), " +
                       settings.threads_text(),
              .columns = {"contender", "pass", "ms", "spread", "quiet", "GFLOP/s nonzeros",
                          "of L1-fed", "GFLOP/s dense", "over dense", "predicted ms"}};
  for (const LinearRow& row : c.rows) {
    table.rows.push_back({row.layout, row.pass, fixed(row.time.median_ms, 4),
                          fixed(100 * row.time.spread, 1) + " %", rate(c, row).quiet_text(),
                          fixed(rate(c, row).gflops_nonzeros(), 1), rate(c, row).share_text(),
                          fixed(gflops_dense(c, row), 1),
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
                               {"dense_ms", row.dense_ms},
                               {"ratio", row.dense_ms / row.time.median_ms},
                               {"pattern", row.pattern},
                               {"activations", row.activations},
                               {"nnz", row.nnz},
                               {"gflops_dense", gflops_dense(c, row)}});
    add_time(json, rate(c, row));
    if (row.predicted_ms) json.set("predicted_ms", *row.predicted_ms);
    if (row.layout == "auto") json.set("chosen", std::string(c.choice.layout->name()));
    report.add_row(std::move(json));
  }
}

// Of csr over the opponent in disturbed moments; empty where not both had some.
std::string busy_ratio(const LinearComparison& c) {
  const double ms = c.row("csr", kBoth).time.busy_ms;
  const double opponent_ms = c.row(kOpponent, kBoth).time.busy_ms;
  return ms == 0.0 || opponent_ms == 0.0 ? "" : fixed(opponent_ms / ms, 2);
}

// A line for each sparsity of one shape: how many times faster than the opponent.
Table summary(const std::vector<const LinearComparison*>& comparisons) {
  Table table{
      .title = "Forward + backward of a linear layer, " + describe(*comparisons.front()) +
               ": times faster than the dense opponent",
      .columns = {"sparsity", "opponent, ms", "dense", "masked", "csr", "csr, forward only",
                  "csr, skewed", "csr, row-major", "auto", "Eigen sparse", "quiet", "csr, busy"}};
  for (const LinearComparison* c : comparisons) {
    const auto ratio = [&](const char* layout, const char* pass = kBoth) {
      const LinearRow& row = c->row(layout, pass);
      return fixed(row.dense_ms / row.time.median_ms, 2);
    };
    table.rows.push_back(
        {fixed(100 * c->sparsity, 0) + " %", fixed(c->row(kOpponent, kBoth).time.median_ms, 2),
         ratio("dense"), ratio("masked"), ratio("csr"), ratio("csr", kForward), ratio("csr-skewed"),
         ratio("csr-row-major"), ratio("auto") + " (" + std::string(c->choice.layout->name()) + ")",
         ratio("eigen-sparse"), rate(*c, c->row("csr", kBoth)).quiet_text(), busy_ratio(*c)});
  }
  return table;
}

// Next to csr, the structured patterns of the same sparsity; empty if there is none.
Table structured_summary(const std::vector<const LinearComparison*>& comparisons) {
  Table table{.title = "Structured patterns, forward + backward, " +
                       describe(*comparisons.front()) + ": times faster than the dense opponent",
              .columns = {"sparsity", "csr"}};
  for (const LinearComparison* c : comparisons) {
    for (const LinearRow& row : c->rows) {
      const bool is_new = std::ranges::find(table.columns, row.layout) == table.columns.end();
      if (row.pattern == "structured" && is_new) table.columns.push_back(row.layout);
    }
  }
  if (table.columns.size() == 2) return table;
  for (const LinearComparison* c : comparisons) {
    std::vector<std::string> cells{fixed(100 * c->sparsity, 0) + " %"};
    for (size_t i = 1; i < table.columns.size(); ++i) {
      const LinearRow* row = c->find(table.columns[i], kBoth);
      cells.push_back(row == nullptr ? "" : fixed(row->dense_ms / row->time.median_ms, 2));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What layout auto reckoned with: a whole step of the layer's weight.
Table predictions(const std::vector<const LinearComparison*>& comparisons) {
  Table table{.title =
                  "A step of that weight (three products, Adam) in ms, as layout "
                  "auto's cost model predicts it and as measured",
              .columns = {"sparsity", "dense", "masked, predicted", "masked", "csr, predicted",
                          "csr", "chosen", "auto, over dense"}};
  for (const LinearComparison* c : comparisons) {
    const auto ms = [&](const char* layout) {
      return fixed(c->row(layout, kStep).time.median_ms, 4);
    };
    const LinearRow& automatic = c->row("auto", kStep);
    table.rows.push_back({fixed(100 * c->sparsity, 0) + " %", ms("dense"),
                          fixed(c->choice.costs.masked_ms, 4), ms("masked"),
                          fixed(c->choice.costs.compressed_ms, 4), ms("csr"),
                          std::string(c->choice.layout->name()),
                          fixed(automatic.dense_ms / automatic.time.median_ms, 2)});
  }
  return table;
}

// What is measured of one shape.
struct ShapeCase {
  Dimensions dimensions;
  Field field = Field::All;
  std::vector<double> sparsities;
};

Dimensions parse_shape(const std::string& text) {
  Dimensions d{};
  read_sizes(text, 'x', "BATCHxINxOUT, as 128x1024x1024", d);
  return d;
}

// 75 % is measured for the structured patterns alone, and so are a transformer's layers: 13008
// tokens, in and out of its wider features.
std::vector<ShapeCase> cases(Size size) {
  if (size == Size::Tiny) {
    return {{{67, 48, 40}, Field::All, {0.9}},
            {{1, 40, 48}, Field::All, {0.9}},
            {{67, 64, 96}, Field::Structured, {0.5, 0.75}}};
  }
  const std::vector<double> all = {0.5, 0.9, 0.99, 0.8, 0.95, 0.98};  // quick: in this order
  std::vector<ShapeCase> list = {{{128, 1024, 1024}, Field::Structured, {0.75}},
                                 {{128, 1024, 1024}, Field::All, all}};
  if (size == Size::Quick) return list;
  for (const Dimensions& d : {Dimensions{128, 4096, 4096}, {2048, 384, 1536}, {1, 1024, 1024}}) {
    list.push_back({d, Field::Structured, {0.75}});
    list.push_back({d, Field::All, all});
  }
  for (const Dimensions& d : {Dimensions{13008, 1024, 4096}, {13008, 4096, 1024}}) {
    list.push_back({d, Field::Structured, {0.5, 0.75, 0.9}});
  }
  return list;
}

void summarize(std::vector<const LinearComparison*> comparisons, Report& report) {
  std::ranges::sort(comparisons, {}, [](const LinearComparison* c) { return c->sparsity; });
  const Table structured = structured_summary(comparisons);
  std::erase_if(comparisons, [](const LinearComparison* c) { return !c->choice.layout; });
  if (!comparisons.empty()) {
    report.summarize(summary(comparisons));
    report.summarize(predictions(comparisons));
  }
  if (!structured.rows.empty()) report.summarize(structured);
}

// The usual cases, or what was asked for of them.
std::vector<ShapeCase> cases(Size size, const CaseRequest& request) {
  std::vector<ShapeCase> list = cases(size);
  if (!request.shapes.empty()) {
    list.clear();
    for (const std::string& shape : request.shapes) {
      list.push_back({parse_shape(shape), Field::All, {0.5, 0.8, 0.9, 0.95, 0.98, 0.99}});
    }
  }
  if (!request.sparsities.empty()) {
    std::erase_if(list, [](const ShapeCase& shape) { return shape.field != Field::All; });
    for (ShapeCase& shape : list) shape.sparsities = request.sparsities;
  }
  return list;
}

void run(const CaseRequest& request, const Settings& settings, Report& report) {
  std::printf("Eigen's sparse product: %s\n", eigen_version().c_str());
  constexpr double kQuickSeconds = 38.0;  // after which nothing more is begun
  std::map<Dimensions, std::vector<LinearComparison>> measured;
  std::vector<Dimensions> in_order;
  for (const ShapeCase& shape : cases(settings.size, request)) {
    const auto [batch, in, out] = shape.dimensions;
    for (const double sparsity : shape.sparsities) {
      if (settings.size == Size::Quick && settings.elapsed_seconds() > kQuickSeconds) break;
      const LinearComparison comparison =
          compare(batch, in, out, sparsity, shape.field, settings.measuring());
      Report::print(details(comparison, settings));
      if (comparison.choice.layout) std::printf("auto: %s\n", comparison.choice.reason.c_str());
      add_rows(comparison, settings, report);
      if (!measured.contains(shape.dimensions)) in_order.push_back(shape.dimensions);
      measured[shape.dimensions].push_back(comparison);
    }
  }
  for (const Dimensions& dimensions : in_order) {
    std::vector<const LinearComparison*> comparisons;
    for (const LinearComparison& c : measured.at(dimensions)) comparisons.push_back(&c);
    summarize(std::move(comparisons), report);
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  CaseRequest request;
  return run_program(
      argc, argv, "linear", "Forward and backward of a linear layer next to raw oneDNN",
      [&](const Settings& settings, Report& report) { run(request, settings, report); },
      request.options("Measure this shape alone: BATCHxINxOUT, as 128x1024x1024"));
}
