// The densities by which `layout: auto` chooses, in a configuration (`csr_up_to`).
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/layouts/density_limits.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The densities that `csr_up_to` gives, by parameter. *Errors:* ConfigError on a parameter that
/// the model does not have, or a number outside [0, 1].
DensityLimits read_density_limits(const Config& config, const Module& model);

/// Replaces `csr_up_to`; an empty map takes it away.
void write_density_limits(Config& config, const DensityLimits& limits);

}  // namespace lacuna
