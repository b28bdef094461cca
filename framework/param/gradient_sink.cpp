#include "lacuna/framework/param/gradient_sink.h"

namespace lacuna {

void GradientSink::accumulate_convolution(const ConvolutionShape& shape, const Tensor& dy,
                                          const Tensor& x) {
  accumulate_computed([&](std::span<float> gradient, Accumulate accumulate) {
    dense_layout().convolutions(shape).weight_gradient(*Pattern::dense(shape.weight_shape()), shape,
                                                       dy, x, accumulate, gradient);
  });
}

}  // namespace lacuna
