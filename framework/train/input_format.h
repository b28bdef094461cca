// InputFormat: what a trained model's inputs must look like, saved beside it.
#pragma once

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/state_dict.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Shape and normalization of the examples that a model was trained on.
struct InputFormat {
  Shape example_shape;
  Normalization normalization;

  static InputFormat of(const DataSplits& data);

  /// "example_shape" (integers) and "normalization" (JSON with `mean` and `std`, exact).
  StateDict state_dict() const;
  /// *Errors:* CheckpointError.
  static InputFormat from_state(const StateDict& state);
};

}  // namespace lacuna
