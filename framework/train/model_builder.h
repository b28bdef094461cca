// From the `model` section of a configuration to a Sequential.
#pragma once

#include <memory>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// The layers of a `model` section: the section itself when it is a list, its `layers` otherwise.
/// The section's `init_fan_in` is given to those linear layers that have none of their own.
Config model_layers(const Config& model);

/// Builds the layers one after the other; each learns its input's shape from the one before.
///
/// A layer is a name ("relu") or a map with `type`, an optional `name` (default: the type and its
/// count, as in linear1), and the type's keys; `sequential` has `layers` of its own.
/// *Shapes:* `example_shape` is that of one input, without the batch.
/// *Errors:* ConfigError at the layer that is unknown or does not fit the one before: both are
/// named, with their shapes.
std::unique_ptr<Sequential> build_model(const Config& layers, const Shape& example_shape);

}  // namespace lacuna
