// What stands at the top of the page: what the runs are, and when, where and how they were run.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// Of one run its state, date, machine, threads and version, and its command; of several what all
/// of them have in common, and from when to when they were begun. Paths are shortened.
std::string html_header(const std::vector<RunData>& runs);

/// A folded table of the same, a row for each of several runs; empty for one.
std::string html_starts(const std::vector<RunData>& runs);

/// What could not be read; of many runs the first few lines, and the others folded.
std::string html_remarks(const std::vector<RunData>& runs);

}  // namespace lacuna
