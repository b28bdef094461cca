// NmValue: activations that are known to be N:M sparse.
#pragma once

#include <memory>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// A variable's value as an N:M matrix: one row per example, one column per feature.
struct NmValue {
  std::shared_ptr<const NmMatrix> matrix;
  Tensor values;  ///< by slot
};

}  // namespace lacuna
