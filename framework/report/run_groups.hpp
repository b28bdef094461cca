// Runs that differ in their seeds alone, as one curve: mean and band.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// Runs of one setting, by their places among all.
struct RunGroup {
  std::string label;
  std::vector<size_t> runs;
};

/// Groups of equal labels, in the order in which these come.
std::vector<RunGroup> groups_of(const std::vector<std::string>& labels);
/// Whether any holds more than one run.
bool has_repetitions(const std::vector<RunGroup>& groups);

/// The mean of curves, and the standard deviation (over n − 1) at each of its steps.
struct CurveBand {
  Curve mean;
  std::vector<double> spread;
};

/// At the steps of all curves, of those that reach from before to behind it, between whose points
/// lines are drawn. One curve alone has a spread of 0. *Cost:* linear in all points.
CurveBand band_of(const std::vector<const Curve*>& curves);

}  // namespace lacuna
