// bench_conv: the three products of a convolution, lacuna's layouts next to oneDNN's primitives.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "common/program.h"
#include "common/request.h"
#include "common/row.h"
#include "conv/comparison.h"

namespace lacuna::bench {
namespace {

using Dimensions = std::array<int64_t, 6>;  // in, out, kernel, stride, size, batch

ConvolutionShape shape_of(const Dimensions& d) {
  return square_convolution(d[5], d[0], d[1], d[2], d[3], d[4]);
}

// "3x3 32 → 64, stride 2, @16, batch 128".
std::string describe(const ConvolutionShape& s) {
  const int64_t stride = s.window.stride.height;
  return s.window.kernel.to_string() + " " + std::to_string(s.in_channels) + " → " +
         std::to_string(s.out_channels) +
         (stride == 1 ? "" : ", stride " + std::to_string(stride)) + " @" +
         std::to_string(s.image.height) + ", batch " + std::to_string(s.batch);
}

// With `weights` of the weight's positions.
double operations(const ConvolutionComparison& c, const ConvolutionRow& row, int64_t weights) {
  return (row.pass == kForward ? 1.0 : 3.0) * c.shape.operations(weights);
}

Rate rate(const ConvolutionComparison& c, const ConvolutionRow& row) {
  return {.time = row.time, .operations = operations(c, row, row.nnz)};
}

double gflops_dense(const ConvolutionComparison& c, const ConvolutionRow& row) {
  return operations(c, row, c.shape.weight_shape().numel()) / row.time.median_ms / 1e6;
}

Table details(const ConvolutionComparison& c, const Settings& settings) {
  Table table{.title = "conv, " + describe(c.shape) + ", sparsity " + fixed(c.sparsity, 2) + " (" +
                       std::to_string(c.row("csr", kBoth).nnz) + " nonzeros), " +
                       settings.threads_text(),
              .columns = {"contender", "pass", "ms", "spread", "quiet", "GFLOP/s nonzeros",
                          "of L1-fed", "GFLOP/s dense", "over dense", "conversion, ms"}};
  for (const ConvolutionRow& row : c.rows) {
    table.rows.push_back(
        {row.layout, row.pass, fixed(row.time.median_ms, 3), fixed(100 * row.time.spread, 1) + " %",
         rate(c, row).quiet_text(), fixed(rate(c, row).gflops_nonzeros(), 1),
         rate(c, row).share_text(), fixed(gflops_dense(c, row), 1),
         fixed(row.dense_ms / row.time.median_ms, 2) + "x", fixed(row.conversion_ms, 3)});
  }
  return table;
}

void add_rows(const ConvolutionComparison& c, const Settings& settings, Report& report) {
  for (const ConvolutionRow& row : c.rows) {
    Config json = Config::map({{"workload", "conv"},
                               {"batch", c.shape.batch},
                               {"in", c.shape.in_channels},
                               {"out", c.shape.out_channels},
                               {"kernel", c.shape.window.kernel.height},
                               {"stride", c.shape.window.stride.height},
                               {"size", c.shape.image.height},
                               {"threads", settings.threads},
                               {"sparsity", c.sparsity},
                               {"layout", row.layout},
                               {"pass", row.pass},
                               {"dense_ms", row.dense_ms},
                               {"conversion_ms", row.conversion_ms},
                               {"ratio", row.dense_ms / row.time.median_ms},
                               {"nnz", row.nnz},
                               {"gflops_dense", gflops_dense(c, row)}});
    add_time(json, rate(c, row));
    if (row.layout == "auto") json.set("chosen", c.chosen);
    report.add_row(std::move(json));
  }
}

// A line for each sparsity of one shape: how many times faster than the best of the opponents.
Table summary(const std::vector<const ConvolutionComparison*>& comparisons,
              const Settings& settings) {
  Table table{.title = "Forward + backward of a convolution, " +
                       describe(comparisons.front()->shape) + ", " + settings.threads_text() +
                       ": times faster than the best of oneDNN",
              .columns = {"sparsity", "best, ms", "direct, ms", "oneDNN auto, ms", "masked", "csr",
                          "csr, forward only", "csr over direct", "auto", "quiet"}};
  for (const ConvolutionComparison* c : comparisons) {
    const auto ratio = [&](const char* layout, const char* pass = kBoth) {
      const ConvolutionRow& row = c->row(layout, pass);
      return fixed(row.dense_ms / row.time.median_ms, 2);
    };
    const ConvolutionRow& direct = c->row(kDirect, kBoth);
    table.rows.push_back(
        {fixed(100 * c->sparsity, 0) + " %", fixed(direct.dense_ms, 2),
         fixed(direct.time.median_ms, 2), fixed(c->row(kAutomatic, kBoth).time.median_ms, 2),
         ratio("masked"), ratio("csr"), ratio("csr", kForward),
         fixed(direct.time.median_ms / c->row("csr", kBoth).time.median_ms, 2),
         ratio("auto") + " (" + c->chosen + ")", rate(*c, c->row("csr", kBoth)).quiet_text()});
  }
  return table;
}

Dimensions parse_shape(const std::string& text) {
  Dimensions d{};
  read_sizes(text, ',', "IN,OUT,KERNEL,STRIDE,SIZE,BATCH, as 16,16,3,1,32,128", d);
  return d;
}

struct Case {
  Dimensions dimensions;
  double sparsity;
};

std::vector<Case> every(const std::vector<Dimensions>& shapes,
                        const std::vector<double>& sparsities) {
  std::vector<Case> cases;
  for (const Dimensions& d : shapes) {
    for (const double sparsity : sparsities) cases.push_back({d, sparsity});
  }
  return cases;
}

// ResNets for CIFAR in batches of 128, those for ImageNet in batches of 32; a few in others.
std::vector<Dimensions> usual_shapes(Size size) {
  if (size == Size::Tiny) {
    return {{16, 32, 3, 1, 8, 20}, {16, 16, 3, 2, 9, 3}, {20, 12, 1, 1, 5, 1}};
  }
  if (size == Size::Quick) {
    return {{16, 16, 3, 1, 32, 128}, {32, 32, 3, 1, 16, 128}, {64, 64, 3, 1, 8, 128}};
  }
  return {{16, 16, 3, 1, 32, 128},   {32, 32, 3, 1, 16, 128}, {64, 64, 3, 1, 8, 128},
          {32, 64, 3, 2, 16, 128},   {64, 64, 3, 1, 56, 32},  {128, 128, 3, 1, 28, 32},
          {256, 256, 3, 1, 14, 32},  {512, 512, 3, 1, 7, 32}, {256, 64, 1, 1, 56, 32},
          {1024, 256, 1, 1, 14, 32}, {32, 32, 3, 1, 16, 32},  {32, 32, 3, 1, 16, 1},
          {256, 256, 3, 1, 14, 128}, {256, 256, 3, 1, 14, 1}};
}

std::vector<Case> cases(Size size, const CaseRequest& request) {
  std::vector<Dimensions> shapes;
  for (const std::string& shape : request.shapes) shapes.push_back(parse_shape(shape));
  std::vector<double> sparsities = request.sparsities;
  const bool is_usual = shapes.empty();
  if (is_usual) shapes = usual_shapes(size);
  if (sparsities.empty()) {
    sparsities = size == Size::Tiny ? std::vector{0.9} : std::vector{0.5, 0.8, 0.9, 0.95, 0.98};
  }
  if (size != Size::Quick) return every(shapes, sparsities);
  // What matters most first: nothing more is begun when the time is over.
  std::vector<Case> list;
  std::ranges::sort(sparsities, {}, [](double sparsity) { return std::abs(sparsity - 0.9); });
  for (const double sparsity : sparsities) {
    for (const Case& c : every(shapes, {sparsity})) list.push_back(c);
  }
  if (is_usual) {
    list.insert(list.begin() + static_cast<int64_t>(shapes.size()),
                {{256, 256, 3, 1, 14, 32}, sparsities.front()});
  }
  return list;
}

// At most half a minute for a convolution at one sparsity, which is 25 works.
MeasureOptions measuring(const Settings& settings) {
  MeasureOptions options{.repetitions = 51, .most_ms = 1200.0};
  if (settings.size == Size::Quick) options = {.repetitions = 21, .most_ms = 150.0};
  if (settings.size == Size::Tiny) options.repetitions = 1;
  if (settings.repetitions > 0) options.repetitions = settings.repetitions;
  return options;
}

void run(const CaseRequest& request, const Settings& settings, Report& report) {
  constexpr double kQuickSeconds = 38.0;  // after which nothing more is begun
  std::map<Dimensions, std::vector<ConvolutionComparison>> measured;
  std::vector<Dimensions> in_order;
  for (const Case& c : cases(settings.size, request)) {
    if (settings.size == Size::Quick && settings.elapsed_seconds() > kQuickSeconds) break;
    const ConvolutionComparison comparison =
        compare(shape_of(c.dimensions), c.sparsity, measuring(settings));
    Report::print(details(comparison, settings));
    std::printf("%sauto: %s, for csr is taken up to a density of %.3f\n",
                comparison.implementations.c_str(), comparison.chosen.c_str(),
                comparison.density_limit);
    add_rows(comparison, settings, report);
    if (!measured.contains(c.dimensions)) in_order.push_back(c.dimensions);
    measured[c.dimensions].push_back(comparison);
  }
  for (const Dimensions& dimensions : in_order) {
    std::vector<const ConvolutionComparison*> comparisons;
    for (const ConvolutionComparison& c : measured.at(dimensions)) comparisons.push_back(&c);
    std::ranges::sort(comparisons, {}, [](const ConvolutionComparison* c) { return c->sparsity; });
    report.summarize(summary(comparisons, settings));
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  using namespace lacuna::bench;
  CaseRequest request;
  return run_program(
      argc, argv, "conv", "Forward and backward of a convolution next to oneDNN's primitives",
      [&](const Settings& settings, Report& report) { run(request, settings, report); },
      request.options("Measure this shape alone: IN,OUT,KERNEL,STRIDE,SIZE,BATCH, as "
                      "16,16,3,1,32,128; several may follow"));
}
