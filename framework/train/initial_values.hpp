// `model.init_from`: the values that a model starts from, where it is not the seed's.
#pragma once

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/model_file.h"

namespace lacuna {

/// Loads what the `init_from` of a `model` section names, if it is there: a path, or a map of
/// `path`, `rename`, `skip` and `find_pattern` (`WeightNames`). *Errors:* ConfigError and
/// CheckpointError with the position; those of `load_weights`.
LoadedWeights load_initial_values(const Config& model_section, Module& model);

}  // namespace lacuna
