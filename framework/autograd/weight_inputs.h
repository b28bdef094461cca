// WatchWeightInputs: observes the inputs of products with weights in a forward pass.
#pragma once

#include <functional>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Receives a weight and its input before `linear`, `conv2d` and `conv1d` multiply them. *Shapes:*
/// input [..., in] for a linear product, where `convolution` is null, and images (for conv1d:
/// sequences) for a convolution. An exception from it ends the forward pass.
using WeightInputWatcher = std::function<void(const ParameterPtr& weight, const Variable& input,
                                              const ConvolutionShape* convolution)>;

/// While it exists, products of parameters in this thread report their inputs, after all transforms
/// of modules. Only the innermost scope counts.
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
