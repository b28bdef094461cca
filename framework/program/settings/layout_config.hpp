// Layouts in a configuration, as --set and --verify change them.
#pragma once

#include <string_view>

#include "lacuna/framework/config/config.h"

namespace lacuna {

/// Gives every entry of a configuration's `sparsity` section this layout, and forgets what was
/// chosen (`csr_up_to`). A section that is a number becomes a map.
void set_sparsity_layout(Config& config, const Config& layout);

/// Whether an entry of `sparsifiers` is of weights.
bool sparsifies_weights(const Config& config);
/// Gives every entry of `sparsifiers` that is of weights this layout, and forgets what was chosen.
/// *Errors:* ConfigError when there are none.
void set_sparsify_layout(Config& config, const Config& layout);

/// Whether a dotted path is the layout of an entry: "sparsity.layout", "sparsity.1.layout",
/// "sparsity.phases.0.layout", "sparsifiers.layout", "sparsifiers.1.layout".
bool is_layout_path(std::string_view path);

}  // namespace lacuna
