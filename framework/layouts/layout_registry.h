// Layouts by name, as configurations and checkpoints name them.
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
/// transposable", "nm 2:4 g8" or "block 16x16", or one that was added. Null when there is none.
const Layout* find_layout(std::string_view name);
/// In alphabetical order, without the structured ones.
std::vector<std::string> layout_names();
/// Makes a user's layout known by its name, so that checkpoints in it can be read. It must live as
/// long as the program. Returns true, for use at namespace scope. *Errors:* StateError when the
/// name is taken.
bool add_layout(const Layout& layout);

}  // namespace lacuna
