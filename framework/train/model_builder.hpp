// From the `model` section of a configuration to a Sequential.
#pragma once

#include <functional>
#include <memory>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// The layers that a `model` section means: a list of layers (`expand_model`) or a preset
/// (`expand_preset`, which writes into the section what the model depends on). *Errors:*
/// ConfigError; of a template with the name of a registered layer, too.
ModelLayers model_layers(const Config& model, const ModelContext& context = {});

/// Called with each layer that the model gets as soon as it is made, before its path is known.
using LayerCheck = std::function<void(const Module& module, const ModelLayer& layer)>;

/// Builds the layers, each by the registry's factory for its type; each learns its input's shape
/// from the one before. A residual's shortcut is built where it is used: where its layers give
/// another shape than they are given, or always. A `linear` with `tied_to: PATH` uses the parameter
/// `weight` of the layer of that full path, which stands before it (TiedLinear).
/// *Shapes:* `example_shape` is that of one input, without the batch.
/// *Errors:* ConfigError at the layer that is unknown or does not fit the one before, or whose
/// branches do not fit each other: both are named, with their positions and shapes; at a key in a
/// template or a repeated layer that nothing understands; at a `tied_to` that names no layer before
/// it with a weight that it could use.
std::unique_ptr<Sequential> build_model(const ModelLayers& layers, const Shape& example_shape,
                                        const LayerCheck& check = {});

}  // namespace lacuna
