// `data.shape`: arrays as examples of another shape, such as grey images with a channel.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// The splits with the shape that `data.shape` gives; the same splits if that key is absent.
/// *Errors:* ConfigError if that is no list of sizes, the examples have another number of values,
/// or they are no arrays.
DataSplits with_given_shape(const Config& data, DataSplits splits);

/// Examples to predict from take the shape that the model was trained on if `data.shape` gave it
/// and they have as many values.
void take_given_shape(const Config& data, const Shape& trained, Examples& examples);

}  // namespace lacuna
