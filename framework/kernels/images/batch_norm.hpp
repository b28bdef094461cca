// Batch normalization of images, with a following addition and ReLU in the same pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The number of values, their mean, and the sum of their squared distances from it.
struct Moments {
  double count = 0.0, mean = 0.0, squares = 0.0;

  /// Adds the moments of further values. *Source:* Chan, Golub and LeVeque, "Updating formulae and
  /// a pairwise algorithm for computing sample variances", 1979.
  void join(const Moments& more) {
    const double total = count + more.count, distance = more.mean - mean;
    if (total == 0.0) return;
    mean += distance * (more.count / total);
    squares += more.squares + distance * distance * (count * more.count / total);
    count = total;
  }
};

/// Mean and biased variance of each channel, in double over sums of floats.
struct ChannelStatistics {
  std::vector<double> mean, variance;
};
/// *Shapes:* x [batch, channels, height, width] in any order. *Cost:* one read of x.
ChannelStatistics channel_statistics(const Tensor& x);

/// The operation after an affine map, in the same pass.
enum class Rectify { No, Yes };

/// y = scale x + shift (+ added) by channel, with ReLU on request. If `passed` is not null, it
/// receives one bit per value, set unless y ≤ 0, which the gradient functions below need; it takes
/// a 32nd of y's memory. *Shapes:* all of one shape and order; `added` may be undefined. *Cost:*
/// one pass.
Tensor channel_affine(const Tensor& x, const std::vector<float>& scale,
                      const std::vector<float>& shift, const Tensor& added, Rectify rectify,
                      Tensor* passed = nullptr);

/// Sums over a channel: Σ g and Σ g (x − mean) / deviation. g is dy; if `passed` is defined, it is
/// zero where the bit is not set.
struct NormGradientSums {
  std::vector<double> g, gx;
};
/// *Shapes:* all of one shape and order; mean and inverse deviation by channel.
NormGradientSums norm_gradient_sums(const Tensor& dy, const Tensor& passed, const Tensor& x,
                                    const std::vector<float>& mean,
                                    const std::vector<float>& inverse_deviation);

/// A channel's coefficients of dx = a g + b x + c.
struct NormSlopes {
  float a = 0.0f, b = 0.0f, c = 0.0f;
};
/// dx by channel, with g as above. If `dg` is not null, it receives g.
Tensor channel_affine_gradient(const Tensor& dy, const Tensor& passed, const Tensor& x,
                               const std::vector<NormSlopes>& slopes, Tensor* dg);

/// What a normalization's gradient is computed from: tensors of one shape and order. Those that it
/// may write over have zero borders.
struct ImageNormInputs {
  Tensor dy = {};       ///< of the output
  Tensor more_dy = {};  ///< undefined: nothing; else added to dy. Written over if it is unique
  Tensor passed = {};   ///< undefined, or a bit for each value, as above
  Tensor x = {};        ///< of the normalization
  Tensor earlier = {};  ///< undefined, or added to dx. Written over if it is unique
  bool may_write_dy = false;
  bool needs_g = false;  ///< whether g is an array of its own in the result
};
struct ImageNormGradient {
  NormGradientSums sums;
  Tensor dx, g;  ///< g: undefined where it was not asked for
};

/// The sums, and dx by what `slopes_of(channel, Σ g, Σ g (x − mean) / deviation)` makes of them.
/// The second pass over a channel comes right after the first, which leaves it in the cache.
/// *Cost:* one read of each input, a write of each result, and new arrays only where no input can
/// be written.
ImageNormGradient norm_gradient(const ImageNormInputs& inputs, const std::vector<float>& mean,
                                const std::vector<float>& inverse_deviation,
                                const std::function<NormSlopes(size_t, double, double)>& slopes_of);

/// Sums of a channel's values, in an order that does not depend on the number of threads. *Shapes:*
/// x [batch, channels, height, width] in any order → [channels].
Tensor sum_channels(const Tensor& x);

}  // namespace lacuna
