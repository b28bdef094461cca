// One block of a dense convolution, as the providers compute it in the calling thread.
#pragma once

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/dense/convolution.hpp"

namespace lacuna {

/// Images in memory: a block's first example, and the storage order.
struct ConstImages {
  const float* data = nullptr;
  Order order = Order::RowMajor;
};
struct Images {
  float* data = nullptr;
  Order order = Order::RowMajor;
};

/// The products of one block of examples, `shape.batch` of them. Weights are row-major.
class ConvolutionProvider {
 public:
  virtual ~ConvolutionProvider() = default;
  virtual void forward(const ConvolutionShape& shape, ConstImages x, const float* weight,
                       const float* bias, Images y) const = 0;
  virtual void input_gradient(const ConvolutionShape& shape, ConstImages dy, const float* weight,
                              Images dx) const = 0;
  virtual void weight_gradient(const ConvolutionShape& shape, ConstImages dy, ConstImages x,
                               float* gradient) const = 0;
};

/// By the definition, in double, to check the other providers. Row-major images.
const ConvolutionProvider& reference_convolution();
/// Products of unfolded images by Eigen. Row-major images.
const ConvolutionProvider& unfolded_convolution();
#if LACUNA_HAVE_DNNL
/// oneDNN's primitives.
const ConvolutionProvider& onednn_convolution(ConvolutionAlgorithm algorithm);
/// Whether oneDNN has Winograd's algorithm for the forward product.
bool onednn_has_winograd(const ConvolutionShape& shape);
#endif

}  // namespace lacuna
