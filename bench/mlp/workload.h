// What the MLP benchmark measures: the two linear layers of a transformer's block, with GELU
// between them.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// Sizes of Y = GELU(X Upᵀ) Downᵀ: weights up [hidden, features] and down [features, hidden].
struct MlpSize {
  int64_t tokens = 0, features = 0, hidden = 0;
};

/// What goes into a pass; both row-major, as what comes before and after the block leaves them.
struct MlpOperands {
  Tensor x;   ///< [tokens, features]
  Tensor dy;  ///< [tokens, features]

  static MlpOperands random(int64_t tokens, int64_t features);
};

}  // namespace lacuna::bench
