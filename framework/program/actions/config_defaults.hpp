// What runs' configurations leave out, and which of their values are defaults.
#pragma once

#include <vector>

#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

/// Fills in `full_config` and `defaults` of each run for the sections train, optimizer and
/// sparsity, which no data is needed to read. A section that cannot be read, as one with a key of
/// a later version, is left as it is.
void find_defaults(std::vector<RunData>& runs);

}  // namespace lacuna
