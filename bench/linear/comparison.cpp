#include "linear/comparison.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "linear/contender.h"
#include "linear/formats.h"

namespace lacuna::bench {
namespace {

struct Contender {
  std::string name;
  const LinearWorkload& workload;
  std::string pattern, activations;
  bool trains;   // whether its whole step is measured too
  bool selects;  // whether passes that begin by selecting the mask are measured too
  LinearContenderPtr run;
};

// Makes contenders, and keeps the workloads they run on.
class Contenders {
 public:
  explicit Contenders(LinearWorkload uniform) { workloads_.push_back(std::move(uniform)); }

  void add_structured(Field field) {
    add(kOpponent, make_opponent(uniform()), false);
    add("csr", layout(csr_layout(), uniform()), field == Field::All);
    for (const Format& format : formats_of(uniform().sparsity, uniform().out, uniform().in)) {
      const LinearWorkload& w = workloads_.emplace_back(uniform().with(
          random_positions(format, uniform().out, uniform().in, uniform().sparsity)));
      add({format.name(), w, "structured", "own order", false, format.is_sampled(),
           layout(*format.layout, w)});
    }
    if (uniform().sparsity == 0.5 && uniform().in % 4 == 0) {
      const LinearWorkload& w = workloads_.emplace_back(uniform().with_activations(2, 4));
      add({kActivations, w, "structured", "row-major", false, false,
           make_sparse_activations(w, 2, 4)});
    }
  }
  void add_others(const Layout& chosen) {
    const LinearWorkload& skewed = workloads_.emplace_back(uniform().with(
        random_mask(uniform().out, uniform().in, uniform().sparsity, Degrees::Skewed)));
    add("dense", make_layout(uniform(), Pattern::dense(uniform().weight.shape())), true);
    add("masked", layout(masked_layout(), uniform()), true);
    add("auto", layout(chosen, uniform()), true);
    add("eigen-sparse", make_eigen_sparse(uniform()), false);
    add({"csr-skewed", skewed, "skewed", "own order", false, false, layout(csr_layout(), skewed)});
    add({"csr-row-major", uniform(), "uniform", "row-major", false, false,
         layout(csr_layout(), uniform(), Activations::RowMajor)});
  }
  const std::vector<Contender>& all() const { return all_; }

 private:
  const LinearWorkload& uniform() const { return workloads_.front(); }

  static LinearContenderPtr layout(const Layout& l, const LinearWorkload& w,
                                   Activations activations = Activations::OwnOrder) {
    const Shape& shape = w.weight.shape();
    return make_layout(w, Pattern::make(l, shape, Positions::of(shape, w.mask)), activations);
  }
  void add(const char* name, LinearContenderPtr run, bool trains) {
    add({name, uniform(), "uniform", "own order", trains, false, std::move(run)});
  }
  void add(Contender contender) {
    check(contender.name, *contender.run, contender.workload);
    if (contender.selects) {
      contender.run->select_mask();
      check(contender.name + kSelected, *contender.run, contender.workload);
    }
    all_.push_back(std::move(contender));
  }

  std::deque<LinearWorkload> workloads_;  // stay where they are
  std::vector<Contender> all_;
};

std::vector<Work> works(const std::vector<Contender>& contenders) {
  std::vector<Work> works;
  for (const Contender& contender : contenders) {
    LinearContender& run = *contender.run;
    const auto change = [&contenders, &run] {
      for (const Contender& other : contenders) other.run->release_results();
      run.change_weights();
    };
    const auto forward = [&run] { run.forward(); };
    const auto backward = [&run] { run.backward(); };
    works.push_back({contender.name, {forward, backward}, change});
    if (contender.selects) {
      const auto select = [&run] {
        run.select_mask();
        run.forward();
      };
      works.push_back({contender.name + kSelected, {select, backward}, change});
    }
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

// The mean of kMaskSteps passes, of which one selects.
Timing spread_over_steps(const Timing& plain, const Timing& selecting) {
  constexpr double kShare = 1.0 / kMaskSteps;
  return plain * (1.0 - kShare) + selecting * kShare;
}

}  // namespace

const LinearRow* LinearComparison::find(const std::string& layout, const std::string& pass) const {
  for (const LinearRow& r : rows) {
    if (r.layout == layout && r.pass == pass) return &r;
  }
  return nullptr;
}

const LinearRow& LinearComparison::row(const std::string& layout, const std::string& pass) const {
  if (const LinearRow* found = find(layout, pass)) return *found;
  throw StateError("no contender '" + layout + "' was measured in pass '" + pass + "'");
}

LinearComparison compare(int64_t batch, int64_t in, int64_t out, double sparsity, Field field,
                         const MeasureOptions& options) {
  LinearWorkload uniform = LinearWorkload::random(batch, in, out, sparsity, Degrees::Uniform);
  LinearComparison result{.batch = batch, .in = in, .out = out, .sparsity = sparsity};
  if (field == Field::All) result.choice = compare_layouts(Shape{out, in}, uniform.nnz, batch);
  Contenders contenders(std::move(uniform));
  contenders.add_structured(field);
  if (field == Field::All) contenders.add_others(*result.choice.layout);
  const std::vector<Contender>& all = contenders.all();
  const auto timings = measure(works(all), options);
  const auto add = [&](const Contender& c, const std::string& pass, const Timing& time,
                       const Timing& dense, const char* suffix = "") {
    result.rows.push_back({.layout = c.name + suffix,
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
    const std::vector<Timing>&passes = timings.at(c.name), &dense = timings.at(kOpponent);
    for (const auto& [stage, pass] : {std::pair{size_t{0}, kForward}, {size_t{1}, kBoth}}) {
      add(c, pass, passes[stage], dense[stage]);
      if (!c.selects) continue;
      const Timing& selecting = timings.at(c.name + kSelected)[stage];
      add(c, pass, spread_over_steps(passes[stage], selecting), dense[stage], kSelected);
    }
    if (c.trains) add(c, kStep, timings.at(c.name + step)[0], timings.at("dense" + step)[0]);
  }
  return result;
}

}  // namespace lacuna::bench
