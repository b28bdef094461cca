// Units that always give the same value, moved into what follows them.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Adds what units that go give to the layers that take them, their mean over the calibration
/// examples, to these layers' biases; where a layer has none, to the running mean of the one batch
/// normalization of its outputs. For units that are constant nothing changes when they are removed,
/// but at the borders of padded convolutions. *Returns* the names of weights for which there is no
/// such place. *Cost:* one pass over the examples.
std::vector<std::string> fold_constants(Module& model, const ModelUnits& units,
                                        const KeptUnits& kept, const CalibrationRun& run);

}  // namespace lacuna
