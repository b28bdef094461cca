// What a trained model knows of its data.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/input_format.h"

namespace lacuna {

/// The saved format of a run's data, and the number of classes: that of the model's outputs where
/// classes have no names, 2 for binary_cross_entropy, 0 for regression.
KnownData known_data(const Config& config, const InputFormat& format, const Module& model);

}  // namespace lacuna
