// The dense opponent: the three products of a linear layer by oneDNN's sgemm, called directly with
// oneDNN's own threading. Where lacuna was built without oneDNN, lacuna's own dense products.
#pragma once

#include <string>

#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// "raw dnnl_sgemm", or what stands in for it.
std::string dense_opponent();

/// Y = X Wᵀ. *Shapes:* x [batch, in], weight [out, in], y [batch, out]; all row-major.
void opponent_forward(const Tensor& x, const Tensor& weight, Tensor& y);
/// dX = dY W. *Shapes:* dy [batch, out], weight [out, in], dx [batch, in].
void opponent_input_gradient(const Tensor& dy, const Tensor& weight, Tensor& dx);
/// dW = dYᵀ X. *Shapes:* dy [batch, out], x [batch, in], dw [out, in].
void opponent_weight_gradient(const Tensor& dy, const Tensor& x, Tensor& dw);

}  // namespace lacuna::bench
