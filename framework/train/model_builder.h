// From the `model` section of a configuration to a Sequential.
#pragma once

#include <memory>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/model/model_layers.h"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// The layers that a `model` section means (`expand_model`). *Errors:* ConfigError; of a template
/// with the name of a registered layer, too.
ModelLayers model_layers(const Config& model);

/// Builds the layers, each by the registry's factory for its type; each learns its input's shape
/// from the one before. A residual's shortcut is built where it is used: where its layers give
/// another shape than they are given, or always. Linear layers that are tied to another's parameter
/// get it in the end.
/// *Shapes:* `example_shape` is that of one input, without the batch.
/// *Errors:* ConfigError at the layer that is unknown or does not fit the one before, or whose
/// branches do not fit each other: both are named, with their positions and shapes; on a layer tied
/// to a parameter that the model lacks, or that has another shape; at a key in a template or a
/// repeated layer that nothing understands.
std::unique_ptr<Sequential> build_model(const ModelLayers& layers, const Shape& example_shape);

}  // namespace lacuna
