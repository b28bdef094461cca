// The built-in layers of sequences.
#pragma once

#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

/// Adds them under their names: a part of `register_layers`.
void register_token_layers(LayerRegistry& registry);

}  // namespace lacuna
