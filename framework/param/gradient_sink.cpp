#include "lacuna/framework/param/gradient_sink.h"

#include "lacuna/framework/core/error.h"

namespace lacuna {

void GradientSink::accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                                          const Tensor& x) {
  accumulate_computed([&](std::span<float> gradient, Accumulate accumulate) {
    dense_layout().convolutions(shape).weight_gradient(*Pattern::dense(shape.weight_shape()), shape,
                                                       dy, x, accumulate, gradient);
  });
}

void WeightReference::require_unchanged() const {
  if (current == nullptr || *current == version) return;
  throw StateError("the weight '" + name +
                   "' has changed since the forward pass; call backward before the optimizer's "
                   "step, and before anything else that changes weights or masks");
}

}  // namespace lacuna
