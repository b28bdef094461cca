// The `model` section of a model without some of its units.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/shrink/model_units.hpp"

namespace lacuna {

/// The layers that a model was built of, written out one by one under the same paths, with the
/// sizes that are left: presets, templates and repetitions cannot have sizes of their own in each
/// copy. `model` is what was built of `layers`: a shortcut that it does not use is left out.
Config smaller_layers(const ModelLayers& layers, const Module& model, const ModelUnits& units,
                      const KeptUnits& kept);

}  // namespace lacuna
