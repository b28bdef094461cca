#include "linear/comparison.h"

#include <functional>

#include "lacuna/framework/core/error.h"
#include "linear/contender.h"

namespace lacuna::bench {
namespace {

struct Contender {
  std::string name;
  const LinearWorkload& workload;
  std::string pattern, activations;
  bool trains;  // whether its whole step is measured too
  LinearContenderPtr run;
};

std::vector<Contender> contenders(const LinearWorkload& uniform, const LinearWorkload& skewed,
                                  const Layout& chosen) {
  const Shape& shape = uniform.weight.shape();
  const auto layout = [&](const Layout& l, const LinearWorkload& w,
                          Activations activations = Activations::OwnOrder) {
    return make_layout(w, Pattern::make(l, shape, Positions::of(shape, w.mask)), activations);
  };
  std::vector<Contender> all;
  const auto add = [&](const char* name, LinearContenderPtr run, bool trains) {
    all.push_back({name, uniform, "uniform", "own order", trains, std::move(run)});
  };
  add(kOpponent, make_opponent(uniform), false);
  add("dense", make_layout(uniform, Pattern::dense(shape)), true);
  add("masked", layout(masked_layout(), uniform), true);
  add("csr", layout(csr_layout(), uniform), true);
  add("auto", layout(chosen, uniform), false);
  add("eigen-sparse", make_eigen_sparse(uniform), false);
  all.push_back({"csr-skewed", skewed, "skewed", "own order", false,  //
                 layout(csr_layout(), skewed)});
  all.push_back({"csr-row-major", uniform, "uniform", "row-major", false,
                 layout(csr_layout(), uniform, Activations::RowMajor)});
  for (const Contender& contender : all) check(contender.name, *contender.run, contender.workload);
  return all;
}

std::vector<Work> works(const std::vector<Contender>& contenders) {
  std::vector<Work> works;
  for (const Contender& contender : contenders) {
    LinearContender& run = *contender.run;
    const auto change = [&run] { run.change_weights(); };
    const auto forward = [&run] { run.forward(); };
    const auto backward = [&run] { run.backward(); };
    works.push_back({contender.name, {forward, backward}, change});
    if (!contender.trains) continue;
    const auto step = [&run] {
      run.forward();
      run.backward();
      run.update();
    };
    works.push_back({contender.name + "/" + kStep, {step}, change});
  }
  return works;
}

}  // namespace

const LinearRow& LinearComparison::row(const std::string& layout, const std::string& pass) const {
  for (const LinearRow& r : rows) {
    if (r.layout == layout && r.pass == pass) return r;
  }
  throw StateError("no contender '" + layout + "' was measured in pass '" + pass + "'");
}

LinearComparison compare(int64_t batch, int64_t in, int64_t out, double sparsity,
                         const MeasureOptions& options) {
  const LinearWorkload uniform = LinearWorkload::random(batch, in, out, sparsity, Degrees::Uniform);
  const LinearWorkload skewed = LinearWorkload::random(batch, in, out, sparsity, Degrees::Skewed);
  LinearComparison result{.batch = batch, .in = in, .out = out, .sparsity = sparsity};
  result.choice = compare_layouts(Shape{out, in}, uniform.nnz, batch);
  const std::vector<Contender> all = contenders(uniform, skewed, *result.choice.layout);
  const auto timings = measure(works(all), options);
  const auto add = [&](const Contender& c, const std::string& pass, const Timing& time,
                       const Timing& dense) {
    result.rows.push_back({.layout = c.name,
                           .pass = pass,
                           .pattern = c.pattern,
                           .activations = c.activations,
                           .nnz = c.workload.nnz,
                           .time = time,
                           .dense_ms = dense.median_ms});
    if (pass != kStep) return;
    if (c.name == "masked") result.rows.back().predicted_ms = result.choice.costs.masked_ms;
    if (c.name == "csr") result.rows.back().predicted_ms = result.choice.costs.compressed_ms;
  };
  const std::string step = std::string("/") + kStep;
  for (const Contender& c : all) {
    add(c, kForward, timings.at(c.name)[0], timings.at(kOpponent)[0]);
    add(c, kBoth, timings.at(c.name)[1], timings.at(kOpponent)[1]);
    if (c.trains) add(c, kStep, timings.at(c.name + step)[0], timings.at("dense" + step)[0]);
  }
  return result;
}

}  // namespace lacuna::bench
