// OtherModelError: saved values that do not fit the model.
#pragma once

#include "lacuna/framework/core/error.h"

namespace lacuna {

/// Saved values have other names or shapes than the model.
class OtherModelError : public CheckpointError {
  using CheckpointError::CheckpointError;
};

}  // namespace lacuna
