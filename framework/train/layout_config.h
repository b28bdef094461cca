// Layouts in a configuration: those that were chosen, and those that are asked for.
#pragma once

#include <string_view>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/layouts/cost_model.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The densities that `csr_up_to` gives, by parameter. *Errors:* ConfigError on a parameter that
/// the model does not have, or a number outside [0, 1].
DensityLimits read_density_limits(const Config& config, const Module& model);

/// Writes `csr_up_to` anew; an empty map takes it away.
void write_density_limits(Config& config, const DensityLimits& limits);

/// Gives every entry of a configuration's `sparsity` section this layout, and forgets what was
/// chosen (`csr_up_to`). A section that is a number becomes a map.
void set_sparsity_layout(Config& config, const Config& layout);

/// Whether an entry of `sparsify` is of weights.
bool sparsifies_weights(const Config& config);
/// The same for these entries. *Errors:* ConfigError when there are none.
void set_sparsify_layout(Config& config, const Config& layout);

/// Whether a dotted path is the layout of an entry: "sparsity.layout", "sparsity.1.layout",
/// "sparsity.phases.0.layout", "sparsify.layout", "sparsify.1.layout".
bool is_layout_path(std::string_view path);

}  // namespace lacuna
