// Softmax and its logarithm over the rows of a matrix, and their derivatives.
#pragma once

#include <cstdint>

namespace lacuna {

enum class SoftmaxKind {
  Probabilities,  ///< y_j = e^(x_j − m) / Σ_k e^(x_k − m), m the row's largest element
  Logarithm,      ///< y_j = x_j − m − log Σ_k e^(x_k − m)
};

// Arrays are row-major [rows, features]. The output may be one of the inputs. A row that holds NaN
// or +∞, or nothing but −∞, becomes NaN. *Cost:* three passes over a row, which stays in the cache;
// several threads when there is much to do.

/// y from x.
void softmax(SoftmaxKind kind, int64_t rows, int64_t features, const float* x, float* y);

/// dx from the output y and its gradient:
/// dx = y (dy − Σ_k dy_k y_k), or for the logarithm dx = dy − e^y Σ_k dy_k.
void softmax_gradient(SoftmaxKind kind, int64_t rows, int64_t features, const float* y,
                      const float* dy, float* dx);

}  // namespace lacuna
