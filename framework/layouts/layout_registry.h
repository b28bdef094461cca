// Layouts by their names in configurations and checkpoints.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// Layouts for parameters, by the parameters' full names.
using LayoutChoices = std::map<std::string, const Layout*, std::less<>>;

/// The layout of that name: dense, masked, csr, a structured one such as "nm 2:4", "nm 2:4
/// transposable", "nm 2:4 g8" or "block 16x16", or one that was added. Null if there is none.
const Layout* find_layout(std::string_view name);
/// In alphabetical order, without the structured ones.
std::vector<std::string> layout_names();
/// Registers a user's layout by its name, so that checkpoints in it can be read. It must exist
/// until the program ends. Returns true, for use at namespace scope. *Errors:* StateError if the
/// name is taken.
bool add_layout(const Layout& layout);

}  // namespace lacuna
