// What `lacuna prune` is asked for on its command line: by a file, or by options without one.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {

/// The configuration of the file, whose paths may lie next to it; without one, a map with the
/// section `sparsity` of --method (default: admm), if that or --sparsity is given. *Errors:*
/// ConfigError when nothing says what to prune.
Config given_configuration(const PruneCommand& command);

/// Applies --sparsity, --method, --set and --threads, in this order.
void apply_prune_options(Config& given, const PruneCommand& command);

/// Prints what was chosen for a command without a file, on one line of the standard error output.
void report_choice(const PruneCommand& command, const Config& config);

}  // namespace lacuna
