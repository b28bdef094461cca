// Layouts in a configuration: those that were chosen, and those that are asked for.
#pragma once

#include <string>
#include <string_view>

#include "lacuna/framework/core/config.h"

namespace lacuna {

/// Gives every entry of a configuration's `sparsity` section this layout, and forgets what was
/// chosen (`layouts`). A section that is a number becomes a map.
void set_layout(Config& config, const Config& layout);

/// Whether a dotted path is the layout of a sparsity entry: "sparsity.layout",
/// "sparsity.1.layout", "sparsity.phases.0.layout".
bool is_layout_path(std::string_view path);

}  // namespace lacuna
