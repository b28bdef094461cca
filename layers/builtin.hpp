// The list of built-in layers.
#pragma once

#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

/// Adds every layer of this folder under its name in a configuration. A new layer is one line here.
/// *Errors:* StateError when a name is taken, as by a second call.
void register_layers(LayerRegistry& registry);

}  // namespace lacuna
