// Checkpoints of quantized runs that hold int8 weights without their float32 ones.
#pragma once

#include "lacuna/framework/config/state_dict.h"

namespace lacuna {

/// The state of a model ("model") in a checkpoint's state without the values of weights that are
/// there in int8; their masks or positions stay, and NAME/shape holds the shape of a dense weight
/// that is no matrix. *Errors:* CheckpointError.
StateDict without_float32(const StateDict& state);

/// Whether a checkpoint's state has a weight in int8 alone. *Errors:* CheckpointError.
bool lacks_float32(const StateDict& state);

/// The state of a model in a checkpoint's state. Where weights are there in int8 alone, their
/// values are scale · value. *Errors:* CheckpointError for positions that are not as many as int8
/// values, or a shape that does not fit them. *Cost:* for those weights, float32 values in memory.
StateDict model_state(const StateDict& state);

}  // namespace lacuna
