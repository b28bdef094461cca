// Where the time of repeated passes goes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lacuna::bench {

/// Of the seconds of each pass by kind of work: the median of each kind over the passes but the
/// first, in ms.
std::map<std::string, double> median_ms_by_kind(
    const std::vector<std::map<std::string, double>>& passes);

}  // namespace lacuna::bench
