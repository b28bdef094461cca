// Units that always give the same value, moved into what follows them.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// Adds what units that go give to the layers that take them, their mean over the calibration
/// examples, to these layers' biases; where a layer has none, or a sparse one, to the running mean
/// of the batch_norm that alone reads its outputs (inference/fold_batch_norm.hpp). For units that
/// are constant nothing changes when they are removed, but at the borders of padded convolutions.
/// *Shapes:* `example` is what the model is given, without the batch. *Returns* the names of
/// weights for which there is no such place, among them weights that several layers share, and
/// those with a sparse bias alone (which takes what its mask allows). *Cost:* one pass over the
/// examples.
std::vector<std::string> fold_constants(Module& model, const Shape& example,
                                        const ModelUnits& units, const KeptUnits& kept,
                                        const CalibrationRun& run);

}  // namespace lacuna
