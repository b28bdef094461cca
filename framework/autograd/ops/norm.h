// Normalization as an operation.
#pragma once

#include <cstdint>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

struct LayerNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

/// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (of the population) over
/// the last dimension. *Shapes:* x [..., features], weight and bias [features] → [..., features];
/// slabs of the batch stay slabs, other orders give row-major.
/// *Errors:* ShapeError with the shapes. *Source:* Ba, Kiros and Hinton, arXiv:1607.06450.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const LayerNormOptions& options = {});

struct RmsNormOptions {
  double eps = 1e-6;  ///< added to the mean square
};

/// y = x / √(⟨x²⟩ + eps) · weight, the mean ⟨·⟩ over the last dimension. *Shapes:* x [...,
/// features], weight [features] → [..., features]; the storage order as in layer_norm. *Errors:*
/// ShapeError with the shapes. *Source:* Zhang and Sennrich, arXiv:1910.07467.
Variable rms_norm(const Variable& x, const Variable& weight, const RmsNormOptions& options = {});

struct GroupNormOptions {
  int64_t groups = 1;  ///< of consecutive channels; 1 normalizes over all of an example
  double eps = 1e-5;   ///< added to the variance
};

/// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (of the population) of
/// each example over the elements of each group of channels; weight and bias have one value per
/// channel. *Shapes:* x [batch, channels, ...], weight and bias [channels] → x's shape, row-major.
/// *Errors:* ShapeError with the shapes, and where groups do not divide the channels. *Saves:* x,
/// and two floats per group. *Source:* Wu and He, "Group normalization", ECCV 2018
/// (arXiv:1803.08494); the same as PyTorch's GroupNorm.
Variable group_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const GroupNormOptions& options = {});

}  // namespace lacuna
