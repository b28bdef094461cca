// The one list of everything that comes with lacuna and has a name in a configuration.
#pragma once

namespace lacuna {

/// Adds what is built in to the registries that do not hold it from the start; only the first call
/// does. An explicit list, because a static library drops objects that register themselves.
void register_builtins();

}  // namespace lacuna
