// The registry of layers: names in a configuration → modules.
#pragma once

#include <memory>

#include "lacuna/framework/config/registry.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A factory gets the layer's map of options and the shape of one example's input, without the
/// batch dimension, so that sizes can be left out. It throws ConfigError at the key at fault, and
/// ShapeError when the layer cannot take that input.
using LayerRegistry = Registry<std::unique_ptr<Module>(const Config& options, const Shape& input)>;

/// The one registry of this program. The built-in layers are added by `register_layers`
/// (layers/builtin.hpp).
LayerRegistry& layer_registry();

}  // namespace lacuna
