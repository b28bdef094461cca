// The list of built-in layers.
#pragma once

#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

/// Registers every layer of this folder under its name in a configuration: calls each function
/// `register_NAME(LayerRegistry&)` of its sources, which cmake/lacuna_layers.cmake lists. *Errors:*
/// StateError if a name is taken, as by a second call.
void register_layers(LayerRegistry& registry);

}  // namespace lacuna
