// Where runs' configurations differ in meaning, and which runs are repetitions of each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// A key whose value is not the same in all configurations, and each run's, as JSON; empty where it
/// has none, and where it has null, which means the same: a section that is left out.
struct Difference {
  std::string key;
  std::vector<std::string> values;
};

/// Differences in meaning. A key that is left out has its default (RunData::defaults), and where
/// runs have nothing but defaults there is no difference: it follows from another one, as from
/// another optimizer. Paths from the root count by their last name. Left out are names of layers
/// and what they are given, what only states where a run is, what it logs and keeps, and what was
/// measured on the machine. Lists are taken apart by index. What a run has changed while it went on
/// (RunData::changes) differs under keys of its own: `changed.optimizer.lr`, "0.3 until step 45".
std::vector<Difference> config_differences(const std::vector<RunData>& runs);

/// The same of some of the runs, by their places.
std::vector<Difference> config_differences(const std::vector<RunData>& runs,
                                           const std::vector<size_t>& places);

/// A label for each run, the same for runs that differ in their seeds (and threads) alone: what the
/// runs' own labels have in common, "rigl" of "rigl-s0" and "rigl-s1"; where these do not tell all
/// groups apart the settings in which they differ, "algorithm=rigl, sparsity=0.9", and "as
/// configured" where there are none.
std::vector<std::string> seed_labels(const std::vector<RunData>& runs);

/// Adds to the labels of runs what keeps them out of a mean over seeds: "int8"; "running" and
/// "unfinished", each of which is alone; and "same seed", where a run of that label and seed is
/// there already.
void set_apart(const std::vector<RunData>& runs, std::vector<std::string>& labels);

/// A value of `Difference` as people write it: text without quotes, nothing as "-".
std::string readable_value(const std::string& json);

}  // namespace lacuna
