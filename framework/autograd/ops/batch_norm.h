// Batch normalization as an operation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/shards.h"

namespace lacuna {

/// The moments of a batch normalization, one value for each channel.
struct ChannelMoments {
  std::vector<double> mean;
  std::vector<double> variance;  ///< of the population
};

/// Whether the moments are those of x itself, through which gradients flow, or constants.
enum class MomentsOf { Batch, Elsewhere };

struct BatchNormOptions {
  double eps = 1e-5;  ///< added to the variance
};

/// The moments of each channel. *Shapes:* x [batch, channels, …], at most two dimensions after the
/// channels. *Errors:* ShapeError. *Cost:* one read of x.
ChannelMoments channel_moments(const Variable& x);

/// y = (x − mean) / √(variance + eps) · weight + bias, by channel. *Shapes:* x [batch, channels],
/// [batch, channels, length] or [batch, channels, height, width]; weight and bias [channels], or
/// undefined for 1 and 0. *Errors:* ShapeError with the shapes. *Cost:* the value is computed when
/// it is needed: an addition and a ReLU after it run in the same pass, forward and backward.
/// *Source:* Ioffe and Szegedy, arXiv:1502.03167.
Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const ChannelMoments& moments, MomentsOf of,
                    const BatchNormOptions& options = {});

/// The shards of a batch that are normalized together, and the processes that have the others.
struct NormShards {
  std::vector<int64_t> indices;  ///< of this process's shards
  ShardPeers* peers = nullptr;   ///< null: these are all. *Lifetime:* until after the backward pass
};

/// Moments over all shards, and the number of values per channel.
struct JointMoments {
  ChannelMoments moments;
  double values = 0.0;
};

/// Combined in the shards' tree (core/shards.h), over all processes. *Shapes:* as above, one x per
/// shard of this process. *Cost:* one read of each x, a message of 2 channels + 3 numbers.
JointMoments channel_moments(std::span<const Variable> xs, const NormShards& shards);

/// As above, with the moments of all shards, through which gradients flow: their sums are combined
/// in the same tree in the backward pass, which all processes must run. *Errors:* as above;
/// StateError if a result is used by more than four operations that each fuse it.
std::vector<Variable> batch_norm(std::span<const Variable> xs, const Variable& weight,
                                 const Variable& bias, const JointMoments& joint,
                                 const NormShards& shards, const BatchNormOptions& options = {});

/// y = x, for a batch normalization that is folded into the weights before it. An addition and a
/// ReLU after it run in one pass, as after the normalization; without them it costs nothing.
/// *Shapes, errors:* as batch_norm.
Variable folded_batch_norm(const Variable& x);

}  // namespace lacuna
