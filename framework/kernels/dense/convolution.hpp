// The dense products of a convolution: oneDNN's, or Eigen's products of unfolded images.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The storage order in which dense products take and give images of so many channels.
Order dense_image_order(int64_t channels);

/// Whether there is Winograd's transformation for such a convolution on this processor (oneDNN has
/// it for AVX-512); if there is none, the direct product is taken in its place.
bool has_winograd(const ConvolutionShape& shape);

/// Winograd's transformation in few blocks: each transforms the weight again, for which at eight
/// the time of many channels on small images doubles. One, or two where each then has 256 tiles of
/// 4 × 4 outputs, and more where a block's transformed images were above 32 MiB: by the sizes
/// alone, so that results do not depend on the number of threads.
ConvolutionAlgorithm winograd_for(const ConvolutionShape& shape);

/// y = w ∗ x + bias. *Shapes:* weight [out, in / groups, kernel] row-major, bias [out] or null;
/// x [batch, in, image] in any order → y in `dense_image_order`. *Cost:* blocks of examples that
/// depend on the sizes alone, each a single-threaded product; the weight is reordered once.
/// *Errors:* Error where oneDNN fails.
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
