// The one list of everything that comes with lacuna and has a name in a configuration.
#pragma once

namespace lacuna {

/// Adds the built-in entries to the registries that do not have them from the start; only the first
/// call does this. An explicit list, because a static library drops objects that register
/// themselves.
void register_builtins();

}  // namespace lacuna
