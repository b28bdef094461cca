// Batch normalization as an operation.
#pragma once

#include <vector>

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// What a batch normalization normalizes by, one value for each channel.
struct ChannelMoments {
  std::vector<double> mean;
  std::vector<double> variance;  ///< of the population
};

/// Whether the moments are those of x itself, which gradients flow through, or constants.
enum class MomentsOf { Batch, Elsewhere };

struct BatchNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

/// The moments of each channel. *Shapes:* x [batch, channels, …], at most two dimensions behind.
/// *Errors:* ShapeError. *Cost:* one read of x.
ChannelMoments channel_moments(const Variable& x);

/// y = (x − mean) / √(variance + eps) · weight + bias, by channel. *Shapes:* x [batch, channels],
/// [batch, channels, length] or [batch, channels, height, width]; weight and bias [channels], or
/// undefined for 1 and 0. *Errors:* ShapeError with the shapes. *Cost:* the value is computed where
/// somebody asks for it: an addition and a ReLU behind it run in the same pass, forward and
/// backward. *Source:* Ioffe and Szegedy, arXiv:1502.03167.
Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const ChannelMoments& moments, MomentsOf of,
                    const BatchNormOptions& options = {});

/// y = x: what is left of a batch normalization whose numbers the weights before it have taken in.
/// An addition and a ReLU behind it run in one pass, as behind the normalization; without them it
/// costs nothing. *Shapes, errors:* as batch_norm.
Variable folded_batch_norm(const Variable& x);

}  // namespace lacuna
