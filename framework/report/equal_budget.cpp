#include "lacuna/framework/report/equal_budget.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/report/run_table.hpp"

namespace lacuna {
namespace {

// Seconds of training until each event of training, summed from what a step between two took.
class Times {
 public:
  explicit Times(const RunData& run) {
    double step = 0.0, seconds = 0.0;
    until_.add(0.0, 0.0);
    for (size_t i = 0; i < run.step_seconds.steps.size(); ++i) {
      seconds += run.step_seconds.values[i] * (run.step_seconds.steps[i] - step);
      step = run.step_seconds.steps[i];
      until_.add(step, seconds);
    }
  }

  bool are_known() const { return until_.steps.size() > 1; }

  // On the line through the two nearest events; beyond the last one as before it.
  double at(double step) const {
    const std::vector<double>& steps = until_.steps;
    const auto found = std::ranges::lower_bound(steps, step) - steps.begin();
    const auto above = std::clamp<size_t>(static_cast<size_t>(found), 1, steps.size() - 1);
    const double low = steps[above - 1], share = (step - low) / (steps[above] - low);
    return std::lerp(until_.values[above - 1], until_.values[above], share);
  }

 private:
  Curve until_;
};

// The steps of the split that a run is judged by.
std::vector<double> judged_steps(const RunData& run) {
  for (const char* split : {"test", "validation", "train"}) {
    const auto curves = run.splits.find(split);
    if (curves == run.splits.end()) continue;
    const auto loss = curves->second.find("loss");
    if (loss != curves->second.end() && !loss->second.empty()) return loss->second.steps;
  }
  throw DataError("run '" + run.name + "' has no result yet");
}

void cut(Curve& curve, double last_step) {
  const auto keep = std::ranges::upper_bound(curve.steps, last_step) - curve.steps.begin();
  curve.steps.resize(static_cast<size_t>(keep));
  curve.values.resize(static_cast<size_t>(keep));
}

std::string spent_in_words(double spent, Budget by) {
  if (by == Budget::Step) return fmt::format("after {} steps", grouped(std::llround(spent)));
  return fmt::format("after {:.4g} s of training", spent);
}

// The nonzeros after a step, in place of those after the last one, which the summary has.
void count_nonzeros(RunData& run, double step) {
  const Config nnz = run.summary.get("nnz");
  if (!nnz.is_number()) return;
  const double pruned_later = sum_of_nonzeros(run, step) - sum_of_nonzeros(run, INFINITY);
  if (pruned_later == 0.0) return;
  run.summary.set("nnz", static_cast<int64_t>(nnz.as<double>() + pruned_later));
  run.summary.erase("parameter_bytes");  // not known of that step
}

}  // namespace

std::string EqualBudget::in_words(Budget by) const { return spent_in_words(most, by); }

EqualBudget cut_to_equal_budget(std::vector<RunData> runs, Budget by) {
  std::vector<Times> times;
  EqualBudget equal{.runs = {}, .most = INFINITY};
  const auto spent = [&](size_t run, double step) {
    return by == Budget::Step ? step : times[run].at(step);
  };
  for (const RunData& run : runs) {
    times.emplace_back(run);
    const double last = judged_steps(run).back();
    if (by == Budget::Seconds && !times.back().are_known()) {
      throw DataError("run '" + run.name + "' has no times of training steps");
    }
    equal.most = std::min(equal.most, spent(times.size() - 1, last));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    RunData& run = runs[i];
    // The first result counts even where it came later than the budget: there is none before it.
    const std::vector<double> steps = judged_steps(run);
    double last = steps.front();
    const double most = equal.most * (1.0 + 1e-9);
    if (spent(i, last) > most) {
      run.remarks.push_back("is compared by its first evaluation, " +
                            spent_in_words(spent(i, last), by));
    }
    for (const double step : steps) {
      if (spent(i, step) <= most) last = step;
    }
    for (auto& [split, curves] : run.splits) {
      for (auto& [key, curve] : curves) cut(curve, last);
    }
    if (run.summary.is_map()) {
      run.summary = run.summary.clone();
      count_nonzeros(run, last);
      run.summary.set("steps", last);
      if (times[i].are_known()) run.summary.set("train_seconds", times[i].at(last));
    }
  }
  equal.runs = std::move(runs);
  return equal;
}

}  // namespace lacuna
