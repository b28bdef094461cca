// Activation functions as operations.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

// *Shapes:* any, kept; the storage order is kept too. NaN stays NaN.

/// y = max(x, 0). The gradient passes where y is not ≤ 0.
Variable relu(const Variable& x);

/// y = x if x ≥ 0, else slope · x. The gradient is multiplied by the slope where y ≤ 0. With slope
/// 0 this equals relu, except for gradients that are not finite. *Errors:* ConfigError unless slope
/// is a finite number of at least 0. *Source:* Maas, Hannun and Ng, "Rectifier nonlinearities
/// improve neural network acoustic models", ICML 2013.
Variable leaky_relu(const Variable& x, float slope = 0.01f);

/// y = max(x, 0)². *Source:* So et al., "Primer: searching for efficient transformers for language
/// modeling", 2021 (arXiv:2109.08668).
Variable squared_relu(const Variable& x);

/// y = x Φ(x) with Φ the normal distribution's cumulative function.
/// *Source:* Hendrycks and Gimpel, arXiv:1606.08415.
Variable gelu(const Variable& x);
/// y = ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), the approximation of GELU in the same paper.
Variable gelu_tanh(const Variable& x);

/// y = x σ(x).
Variable silu(const Variable& x);

/// y = σ(x) = 1 / (1 + e⁻ˣ).
Variable sigmoid(const Variable& x);

/// y = tanh x.
Variable tanh(const Variable& x);

/// y = silu(gate) · up of x = [gate | up]. *Shapes:* [..., 2 features] → [..., features]; slabs of
/// the batch stay slabs, other orders give row-major. *Errors:* ShapeError when the last dimension
/// is not even. *Source:* Shazeer, arXiv:2002.05202.
Variable swiglu(const Variable& x);

}  // namespace lacuna
