// GradientTap: receives a parameter's dense gradient, of which the pattern keeps only a part.
#pragma once

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The destination of a parameter's gradients while a tap is installed.
enum class GradientRoute {
  Both,     ///< to the tap, and to the parameter as usual
  TapOnly,  ///< to the tap: the parameter gets none, and the owner of the tap gives the optimizer
            ///< one
};

/// Installed on a parameter by an algorithm that needs gradients at positions without weights.
class GradientTap {
 public:
  explicit GradientTap(GradientRoute route = GradientRoute::Both) : route_(route) {}
  virtual ~GradientTap() = default;

  GradientRoute route() const { return route_; }
  /// The gradient of one backward call in the parameter's logical shape, row-major. Several calls
  /// (micro-batches) add up.
  virtual void observe(const Tensor& gradient) = 0;
  /// A gradient dYᵀ X that has not been computed, because a compressed parameter never computes all
  /// of it. The factors may be kept. *Shapes:* dy [..., out], x [..., in].
  virtual void observe_product(const Tensor& dy, const Tensor& x) = 0;
  /// Drops all gradients seen so far, on `zero_grad`.
  virtual void reset() = 0;

 private:
  GradientRoute route_;
};

}  // namespace lacuna
