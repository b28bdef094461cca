// Normalization as an operation.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

struct LayerNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

/// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (of the population) over
/// the last dimension. *Shapes:* x [..., features], weight and bias [features] → [..., features].
/// *Errors:* ShapeError with the shapes. *Source:* Ba, Kiros and Hinton, arXiv:1607.06450.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const LayerNormOptions& options = {});

}  // namespace lacuna
