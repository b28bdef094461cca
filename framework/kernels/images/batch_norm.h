// Batch normalization of images, with the addition and the ReLU behind it in the same pass.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Mean and biased variance of each channel, in double over sums of floats.
struct ChannelStatistics {
  std::vector<double> mean, variance;
};
/// *Shapes:* x [batch, channels, height, width] in any order. *Cost:* one read of x.
ChannelStatistics channel_statistics(const Tensor& x);

/// Σ over a channel of each of them: g, and g (x − mean) / deviation, where g is dy, or zero where
/// y ≤ 0 if there is a y.
struct NormGradientSums {
  std::vector<double> g, gx;
};
/// *Shapes:* all of one shape and order; mean and inverse deviation by channel; y undefined: none.
NormGradientSums norm_gradient_sums(const Tensor& dy, const Tensor& y, const Tensor& x,
                                    const std::vector<float>& mean,
                                    const std::vector<float>& inverse_deviation);

/// What follows an affine map in the same pass.
enum class Rectify { No, Yes };

/// y = scale x + shift (+ added), by channel, and its positive part where asked. *Shapes:* all of
/// one shape and order; `added` may be undefined. *Cost:* one pass.
Tensor channel_affine(const Tensor& x, const std::vector<float>& scale,
                      const std::vector<float>& shift, const Tensor& added, Rectify rectify);

/// dx = a g + b x + c by channel, with g as above. Where `dg` is not null it becomes g.
Tensor channel_affine_gradient(const Tensor& dy, const Tensor& y, const Tensor& x,
                               const std::vector<float>& a, const std::vector<float>& b,
                               const std::vector<float>& c, Tensor* dg);

/// Sums of a channel's values, in an order that does not depend on the number of threads. *Shapes:*
/// x [batch, channels, height, width] in any order → [channels].
Tensor sum_channels(const Tensor& x);

}  // namespace lacuna
