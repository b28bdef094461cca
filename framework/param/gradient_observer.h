// GradientObserver: sees a parameter's dense gradient, of which the pattern keeps only a part.
#pragma once

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Installed on a parameter by an algorithm that needs gradients where there are no weights.
class GradientObserver {
 public:
  virtual ~GradientObserver() = default;
  /// The gradient of one backward call in the parameter's logical shape, row-major. Several calls
  /// (micro-batches) add up.
  virtual void observe(const Tensor& gradient) = 0;
  /// The same for a gradient that is dYᵀ X and has not been computed: a compressed parameter never
  /// has it whole. The factors may be kept. *Shapes:* dy [..., out], x [..., in].
  virtual void observe_product(const Tensor& dy, const Tensor& x) = 0;
  /// Whether it takes the gradients, so that the parameter collects none: who installs such an
  /// observer hands the optimizer a gradient.
  virtual bool takes_gradients() const { return false; }
  /// The gradients seen so far are dropped: `zero_grad`.
  virtual void reset() = 0;
};

}  // namespace lacuna
