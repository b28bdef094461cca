// The one list of everything that comes with lacuna and has a name in a configuration.
#pragma once

namespace lacuna {

/// Adds the built-in layers, optimizers, sparsity algorithms and datasets to their registries; only
/// the first call does. An explicit list, because a static library drops objects that register
/// themselves.
void register_builtins();

}  // namespace lacuna
