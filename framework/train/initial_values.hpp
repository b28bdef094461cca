// `model.init_from`: the values that a model starts from, where it is not the seed's.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Loads what the `init_from` of the `model` section names, if it is there: a path, or a map of
/// `path`, `rename`, `skip` and `find_pattern` (`WeightNames`). Where it is, sparsity that begins
/// with masks inherits those of the loaded weights, pruned by magnitude where more is asked for,
/// unless it says another way: that is written into the configuration. *Returns* what the user
/// should know. *Errors:* ConfigError and CheckpointError with the position; those of
/// `load_weights`.
std::vector<std::string> load_first_values(Config& config, Module& model);

}  // namespace lacuna
