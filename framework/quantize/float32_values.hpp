// Checkpoints of quantized runs that hold int8 weights without their float32 ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"

namespace lacuna {

/// The state of a model ("model") in a checkpoint's state without the values of weights that are
/// there in int8; their masks or positions stay, and NAME/shape holds the shape of a dense weight
/// that is no matrix. `factors`: what a batch_norm behind the layer multiplies the rows of these
/// weights by, by their names (batch_norm_factors). It is part of the int8 scales; without it, they
/// are NAME/unfolded_scales, so that the batch_norm stays as it was trained. *Errors:*
/// CheckpointError.
StateDict without_float32(const StateDict& state,
                          const std::map<std::string, std::vector<double>>& factors = {});

/// Whether a checkpoint's state has a weight in int8 alone. *Errors:* CheckpointError.
bool lacks_float32(const StateDict& state);

/// The state of a model in a checkpoint's state. Where weights are there in int8 alone, their
/// values are (unfolded) scale · value. *Errors:* CheckpointError for positions that are not as
/// many as int8 values, a shape that does not fit them, and unfolded scales that are not one finite
/// number for each output. *Cost:* for those weights, float32 values in memory.
StateDict model_state(const StateDict& state);

}  // namespace lacuna
