// Dense 1×1 convolutions on image slabs: products over the channels of single pixels. Between
// sparse convolutions, images then need not be converted to another order and back.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/accumulate.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Whether the functions below compute it: a kernel of 1×1 without padding or groups, with strides
/// of 1 or 2.
bool has_channel_products(const ConvolutionShape& shape);

/// y = W x + bias at every pixel. Images are in slabs; `weight` is [out, in], bias [out] or null.
/// *Requires* has_channel_products(shape), like the next two.
Tensor channel_products(const ConvolutionShape& shape, const float* weight, const Tensor& x,
                        const float* bias);
/// dx = Wᵀ dy at the pixels that were read, and zero at the others.
Tensor channel_input_gradient(const ConvolutionShape& shape, const float* weight, const Tensor& dy);
/// dW = Σ dy xᵀ over pixels and examples. *Requires* zeros for the examples that the last slab
/// lacks, in both.
void channel_weight_gradient(const ConvolutionShape& shape, const Tensor& dy, const Tensor& x,
                             Accumulate accumulate, std::span<float> gradient);

}  // namespace lacuna
