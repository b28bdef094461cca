// Convolution of images and of sequences.
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
  /// Whether operations on image slabs follow: a dense product of few inputs then computes these.
  bool is_read_in_slabs = false;
};

/// y[n, o] = Σ_c w[o, c] ∗ x[n, c] + b[o], a cross-correlation, as in other frameworks. *Shapes:* x
/// [batch, in, height, width], weight [out, in / groups, kernel height, kernel width], bias [out]
/// or undefined → [batch, out, …]. *Errors:* ShapeError with both shapes if they do not fit or if
/// the kernel is larger than the padded image. *Cost:* that of the weight's layout; activations
/// stay in its storage order.
Variable conv2d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv2dOptions& options = {});
Variable conv2d(const Variable& x, const ParameterPtr& weight, const Variable& bias = {},
                const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;  ///< zeros at each end
  int64_t dilation = 1;
  int64_t groups = 1;
};

/// The same along sequences, computed as a convolution of images of height 1. *Shapes:* x [batch,
/// in, length], weight [out, in / groups, kernel], bias [out] or undefined → [batch, out, …].
/// *Errors, cost:* as conv2d.
Variable conv1d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv1dOptions& options = {});
Variable conv1d(const Variable& x, const ParameterPtr& weight, const Variable& bias = {},
                const Conv1dOptions& options = {});

}  // namespace lacuna
