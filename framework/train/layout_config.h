// Layouts in a configuration: those that were chosen, and those that are asked for.
#pragma once

#include <string_view>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The layouts that `layouts` names, by parameter. *Errors:* ConfigError on a parameter that the
/// model does not have, or a name that is no layout's.
LayoutChoices read_layouts(const Config& config, const Module& model);

/// Writes `layouts` anew; an empty map takes it away.
void write_layouts(Config& config, const LayoutChoices& layouts);

/// Gives every entry of a configuration's `sparsity` section this layout, and forgets what was
/// chosen (`layouts`). A section that is a number becomes a map.
void set_layout(Config& config, const Config& layout);

/// Whether a dotted path is the layout of a sparsity entry: "sparsity.layout",
/// "sparsity.1.layout", "sparsity.phases.0.layout".
bool is_layout_path(std::string_view path);

}  // namespace lacuna
