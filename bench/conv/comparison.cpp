#include "conv/comparison.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"

namespace lacuna::bench {
namespace {

struct Contender {
  std::string name;
  int64_t nnz;
  ConvolutionContenderPtr run;
};

std::string work_name(const std::string& contender, Product product) {
  return contender + "/" + to_string(product);
}
std::string conversion_name(const std::string& contender, Product product) {
  return work_name(contender, product) + "/conversion";
}

std::vector<Contender> contenders(const ConvolutionWorkload& w, const Layout& chosen) {
  std::vector<Contender> all;
  const auto add = [&](const char* name, int64_t nnz, ConvolutionContenderPtr run) {
    check(name, *run, w);
    all.push_back({name, nnz, std::move(run)});
  };
  const auto in_layout = [&](const Layout& layout) {
    return make_convolution_layout(w, Pattern::make(layout, w.weight.shape(), w.mask));
  };
  Opponents opponents = make_convolution_opponents(w);
  add(kDirect, w.weight.numel(), std::move(opponents.direct));
  add(kAutomatic, w.weight.numel(), std::move(opponents.automatic));
  add("masked", w.nnz, in_layout(masked_layout()));
  add("csr", w.nnz, in_layout(csr_layout()));
  add("auto", w.nnz, in_layout(chosen));
  return all;
}

std::vector<Work> works(const std::vector<Contender>& all) {
  std::vector<Work> works;
  for (const Contender& contender : all) {
    ConvolutionContender& run = *contender.run;
    const auto prepare = [&all, &run] {
      for (const Contender& other : all) other.run->release_results();
      run.change_weights();
    };
    for (const Product product : kProducts) {
      works.push_back(
          {work_name(contender.name, product), {[&run, product] { run.run(product); }}, prepare});
      if (product == Product::WeightGradient) continue;
      works.push_back({conversion_name(contender.name, product),
                       {[&run, product] { run.convert(product); }},
                       prepare});
    }
  }
  return works;
}

using Timings = std::map<std::string, std::vector<Timing>>;

double best_of_opponents(const Timings& timings, Product product) {
  return std::min(timings.at(work_name(kDirect, product))[0].median_ms,
                  timings.at(work_name(kAutomatic, product))[0].median_ms);
}

ConvolutionRow row_of(const Contender& contender, const std::string& pass, const Timings& timings) {
  ConvolutionRow row{.layout = contender.name, .pass = pass, .nnz = contender.nnz};
  const std::span products = std::span(kProducts).first(pass == kForward ? 1 : kProducts.size());
  for (const Product product : products) {
    const Timing& time = timings.at(work_name(contender.name, product))[0];
    row.time = product == Product::Forward ? time : row.time + time;
    row.dense_ms += best_of_opponents(timings, product);
    if (product == Product::WeightGradient) continue;
    row.conversion_ms += timings.at(conversion_name(contender.name, product))[0].median_ms;
  }
  return row;
}

}  // namespace

const ConvolutionRow& ConvolutionComparison::row(const std::string& layout,
                                                 const std::string& pass) const {
  for (const ConvolutionRow& r : rows) {
    if (r.layout == layout && r.pass == pass) return r;
  }
  throw StateError("no contender '" + layout + "' was measured in pass '" + pass + "'");
}

ConvolutionComparison compare(const ConvolutionShape& shape, double sparsity,
                              const MeasureOptions& options) {
  ConvolutionWorkload w = ConvolutionWorkload::random(shape, sparsity);
  w.shape.algorithms = fastest_algorithms(shape);
  ConvolutionComparison result{
      .shape = w.shape, .sparsity = sparsity, .density_limit = density_limit(shape)};
  const double density = static_cast<double>(w.nnz) / static_cast<double>(w.weight.numel());
  const Layout& chosen = density <= result.density_limit ? csr_layout() : masked_layout();
  result.chosen = chosen.name();
  const std::vector<Contender> all = contenders(w, chosen);
  for (const Contender& c : all) {
    const std::string by = c.run->implementation();
    if (!by.empty()) result.implementations += c.name + ": " + by + "\n";
  }
  const Timings timings = measure(works(all), options);
  for (const Contender& contender : all) {
    for (const char* pass : {kForward, kBoth}) {
      result.rows.push_back(row_of(contender, pass, timings));
    }
  }
  return result;
}

}  // namespace lacuna::bench
