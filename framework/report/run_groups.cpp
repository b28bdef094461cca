#include "lacuna/framework/report/run_groups.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace lacuna {
namespace {

// Values of a curve at steps that are asked for in ascending order.
class CurveReader {
 public:
  explicit CurveReader(const Curve& curve) : curve_(curve) {}

  // NaN outside of the curve.
  double at(double step) {
    const std::vector<double>& steps = curve_.steps;
    if (steps.empty() || step < steps.front() || step > steps.back()) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    while (place_ + 1 < steps.size() && steps[place_ + 1] <= step) ++place_;
    if (steps[place_] == step || place_ + 1 == steps.size()) return curve_.values[place_];
    const double part = (step - steps[place_]) / (steps[place_ + 1] - steps[place_]);
    return curve_.values[place_] + part * (curve_.values[place_ + 1] - curve_.values[place_]);
  }

 private:
  const Curve& curve_;
  size_t place_ = 0;
};

}  // namespace

std::vector<RunGroup> groups_of(const std::vector<std::string>& labels) {
  std::vector<RunGroup> groups;
  for (size_t i = 0; i < labels.size(); ++i) {
    auto group = std::ranges::find(groups, labels[i], &RunGroup::label);
    if (group == groups.end()) {
      groups.push_back({.label = labels[i], .runs = {}});
      group = groups.end() - 1;
    }
    group->runs.push_back(i);
  }
  return groups;
}

bool has_repetitions(const std::vector<RunGroup>& groups) {
  return std::ranges::any_of(groups, [](const RunGroup& group) { return group.runs.size() > 1; });
}

CurveBand band_of(const std::vector<const Curve*>& curves) {
  std::set<double> steps;
  std::vector<CurveReader> readers;
  for (const Curve* curve : curves) {
    steps.insert(curve->steps.begin(), curve->steps.end());
    readers.emplace_back(*curve);
  }
  CurveBand band;
  for (const double step : steps) {
    std::vector<double> values;
    for (CurveReader& reader : readers) {
      const double value = reader.at(step);
      if (!std::isnan(value)) values.push_back(value);
    }
    double sum = 0.0, squares = 0.0;
    for (const double value : values) sum += value;
    const auto count = static_cast<double>(values.size());
    for (const double value : values) squares += (value - sum / count) * (value - sum / count);
    band.mean.add(step, sum / count);
    band.spread.push_back(values.size() > 1 ? std::sqrt(squares / (count - 1.0)) : 0.0);
  }
  return band;
}

}  // namespace lacuna
