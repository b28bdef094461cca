// Group normalization of images (or of anything with channels), and its derivatives.
#pragma once

#include <cstdint>

namespace lacuna {

/// Arrays [batch, channels, size], row-major: the channels of a group are one run of memory.
struct GroupNormShape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t groups = 1;  ///< divides channels
  int64_t size = 0;    ///< elements of a channel

  int64_t group_channels() const { return channels / groups; }
};

/// y = (x − μ) ρ w + b with μ the mean of an example's group and ρ = 1/√(variance + eps), the
/// variance that of the population; w and b are the channel's. Two passes, so that a large mean
/// costs no precision. *Shapes:* x, y [batch, channels, size]; weight, bias [channels]; mean,
/// inverse_deviation [batch, groups], written for the backward pass. y may be x.
/// *Source:* Wu and He, arXiv:1803.08494.
void group_norm(const GroupNormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation);

/// The same of sum = x + added, group by group: the group of a sum is still in the cache when it is
/// normalized. *Shapes:* added, sum as x.
void group_norm_of_sum(const GroupNormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation);

/// With n = (x − μ) ρ and g = dy w, and ⟨·⟩ the mean over an example's group:
/// dx = ρ (g − ⟨g⟩ − n ⟨g n⟩), products = Σ dy n and totals = Σ dy over each example's channel,
/// whose sums over the batch are the gradients of weight and bias. `added`, if not null, is added
/// to dx, and may be it. *Shapes:* as above; dx [batch, channels, size], no other input; products,
/// totals [batch, channels].
void group_norm_gradient(const GroupNormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         const float* added, float* dx, float* products, float* totals);

}  // namespace lacuna
