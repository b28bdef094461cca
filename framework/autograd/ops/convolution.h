// Convolution of images.
#pragma once

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna {

struct Conv2dOptions {
  Extent stride{1, 1};
  Extent padding{0, 0};  ///< zeros around the image, on each side
  Extent dilation{1, 1};
  int64_t groups = 1;
  ConvolutionAlgorithms algorithms = {};  ///< of products that run dense
};

/// y[n, o] = Σ_c w[o, c] ∗ x[n, c] + b[o], a cross-correlation as everywhere in the field.
/// *Shapes:* x [batch, in, height, width], weight [out, in / groups, kernel height, kernel width],
/// bias [out] or undefined → [batch, out, …]. *Errors:* ShapeError with both shapes where they do
/// not fit, or the kernel is larger than the padded image. *Cost:* that of the weight's layout;
/// activations stay in its storage order.
Variable conv2d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv2dOptions& options = {});
Variable conv2d(const Variable& x, const ParameterPtr& weight, const Variable& bias = {},
                const Conv2dOptions& options = {});

}  // namespace lacuna
