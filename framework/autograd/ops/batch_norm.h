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

/// Which shards of a batch are normalized together, and who has the others.
struct NormShards {
  std::vector<int64_t> indices;  ///< of the shards here
  ShardPeers* peers = nullptr;   ///< null: these are all. *Lifetime:* beyond the backward pass
};

/// Moments over all shards, and of how many values of a channel they are.
struct JointMoments {
  ChannelMoments moments;
  double values = 0.0;
};

/// Joined in the shards' tree (core/shards.h), over all processes. *Shapes:* as above, an x for
/// each shard here. *Cost:* one read of each x, and a message of 2 channels + 3 numbers.
JointMoments channel_moments(std::span<const Variable> xs, const NormShards& shards);

/// As above by the moments of all shards, which gradients flow through: their sums are joined in
/// the same tree when the backward pass comes by, which all processes must run. *Errors:* as above;
/// StateError where a result is used by more than four operations that each fuse it.
std::vector<Variable> batch_norm(std::span<const Variable> xs, const Variable& weight,
                                 const Variable& bias, const JointMoments& joint,
                                 const NormShards& shards, const BatchNormOptions& options = {});

/// y = x: what is left of a batch normalization whose numbers the weights before it have taken in.
/// An addition and a ReLU behind it run in one pass, as behind the normalization; without them it
/// costs nothing. *Shapes, errors:* as batch_norm.
Variable folded_batch_norm(const Variable& x);

}  // namespace lacuna
