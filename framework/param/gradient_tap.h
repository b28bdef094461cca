// GradientTap: sees a parameter's dense gradient, of which the pattern keeps only a part.
#pragma once

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Where a parameter's gradients go while a tap is installed.
enum class GradientRoute {
  Both,     ///< to the tap, and to the parameter as ever
  TapOnly,  ///< to the tap: the parameter collects none, and who installed it hands the optimizer
            ///< one
};

/// Installed on a parameter by an algorithm that needs gradients where there are no weights.
class GradientTap {
 public:
  explicit GradientTap(GradientRoute route = GradientRoute::Both) : route_(route) {}
  virtual ~GradientTap() = default;

  GradientRoute route() const { return route_; }
  /// The gradient of one backward call in the parameter's logical shape, row-major. Several calls
  /// (micro-batches) add up.
  virtual void observe(const Tensor& gradient) = 0;
  /// A gradient that is dYᵀ X and has not been computed: a compressed parameter never has it whole.
  /// The factors may be kept. *Shapes:* dy [..., out], x [..., in].
  virtual void observe_product(const Tensor& dy, const Tensor& x) = 0;
  /// The gradients seen so far are dropped: `zero_grad`.
  virtual void reset() = 0;

 private:
  GradientRoute route_;
};

}  // namespace lacuna
