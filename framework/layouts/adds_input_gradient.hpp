// Input gradients that are added to another gradient on the way.
#pragma once

#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// A layout's products of convolutions may be one: an input gradient is then added to what the
/// input's other users have left of it without a pass of its own.
class AddsInputGradient {
 public:
  virtual ~AddsInputGradient() = default;
  /// As `ConvolutionProducts::input_gradient`, and `earlier` besides, in any storage order.
  virtual Tensor added_input_gradient(const WeightView& weight, const ConvolutionShape& shape,
                                      const Tensor& dy, const Tensor& earlier) const = 0;
};

}  // namespace lacuna
