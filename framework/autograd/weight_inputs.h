// WatchWeightInputs: sees what a forward pass multiplies weights with.
#pragma once

#include <functional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Is shown a weight and its input before `linear`, `conv2d` and `conv1d` multiply them.
/// *Shapes:* input [..., in] of a linear product, where `convolution` is null, and images (of
/// conv1d: sequences) of a convolution. What it throws ends the forward pass.
using WeightInputWatcher = std::function<void(const ParameterPtr& weight, const Variable& input,
                                              const ConvolutionShape* convolution)>;

/// While it lives, products of parameters in this thread show their inputs, as they are after all
/// transforms of modules. The innermost scope counts alone.
class WatchWeightInputs {
 public:
  explicit WatchWeightInputs(WeightInputWatcher watcher);
  ~WatchWeightInputs();
  WatchWeightInputs(const WatchWeightInputs&) = delete;
  WatchWeightInputs& operator=(const WatchWeightInputs&) = delete;

 private:
  WeightInputWatcher watcher_;
  const WeightInputWatcher* saved_;
};

/// The watcher of this thread; null if there is none. For operations.
const WeightInputWatcher* weight_input_watcher();

}  // namespace lacuna
