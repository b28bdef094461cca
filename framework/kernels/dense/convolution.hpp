// The dense products of a convolution: oneDNN's, or Eigen's products of unfolded images.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The storage order of images in dense products, for this number of channels.
Order dense_image_order(int64_t channels);

/// Whether Winograd's transformation is available for a convolution on this processor (oneDNN has
/// it for AVX-512); otherwise the direct product is used.
bool has_winograd(const ConvolutionShape& shape);

/// Winograd's transformation with few blocks: each block transforms the weight again, and with
/// eight blocks, many channels on small images take twice as long. There are two blocks if each
/// then has 256 tiles of 4 × 4 outputs, otherwise one, and more if a block's transformed images
/// would exceed 32 MiB. Only the sizes decide, so results do not depend on the number of threads.
ConvolutionAlgorithm winograd_for(const ConvolutionShape& shape);

/// y = w ∗ x + bias. *Shapes:* weight [out, in / groups, kernel] row-major, bias [out] or null; x
/// [batch, in, image] in any order → y in `dense_image_order`. *Cost:* blocks of examples that
/// depend only on the sizes, each a single-threaded product; the weight is reordered once.
/// *Errors:* Error if oneDNN fails.
Tensor dense_convolution(const ConvolutionShape& shape, ConvolutionAlgorithm algorithm,
                         const float* weight, const Tensor& x, const float* bias);
/// dx from dy.
Tensor dense_convolution_input_gradient(const ConvolutionShape& shape,
                                        ConvolutionAlgorithm algorithm, const float* weight,
                                        const Tensor& dy);
/// The gradient of the weight, row-major. Blocks' gradients are added in their order.
void dense_convolution_weight_gradient(const ConvolutionShape& shape,
                                       ConvolutionAlgorithm algorithm, const Tensor& dy,
                                       const Tensor& x, Accumulate accumulate,
                                       std::span<float> gradient);

}  // namespace lacuna
