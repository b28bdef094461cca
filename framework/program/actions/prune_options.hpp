// What to prune and how: from a configuration, or from options without one.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/prune_run.h"

namespace lacuna {

/// The configuration of the file, whose paths may lie next to it; without one, a map with the
/// section `sparsity` of --method (default: admm), if that or --sparsity is given. *Errors:*
/// ConfigError when nothing states what to prune.
Config given_configuration(const PruneRequest& request);

/// Applies --sparsity, --method, --set and --threads, in this order.
void apply_prune_options(Config& given, const PruneRequest& request);

/// One line about what was chosen for a request without a configuration.
void report_choice(const PruneRequest& request, const Config& config);

}  // namespace lacuna
