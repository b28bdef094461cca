// DenseGradient: collects a parameter's whole gradient for an algorithm that grows by it.
#pragma once

#include "lacuna/framework/param/gradient_observer.h"

namespace lacuna {

/// The sum of the dense gradients since the last `zero_grad`. *Cost:* numel floats.
class DenseGradient final : public GradientObserver {
 public:
  void observe(const Tensor& gradient) override;
  void observe_product(const Tensor& dy, const Tensor& x) override;
  void reset() override { sum_ = Tensor(); }

  /// Undefined before the first backward.
  const Tensor& sum() const { return sum_; }

 private:
  Tensor sum_;
};

}  // namespace lacuna
