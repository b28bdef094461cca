// Layer normalization over the rows of a matrix, and its derivatives.
#pragma once

#include <cstdint>

namespace lacuna {

/// Rows to normalize, each over its features.
struct NormShape {
  int64_t rows = 0;
  int64_t features = 0;
};

/// y_j = (x_j − μ) ρ w_j + b_j with μ the row's mean and ρ = 1/√(variance + eps), the variance that
/// of the population. Two passes, so that a large mean costs no precision.
/// *Shapes:* x, y [rows, features]; weight, bias [features]; mean, inverse_deviation [rows],
/// written for the backward pass. y may be x. *Source:* Ba, Kiros and Hinton, arXiv:1607.06450.
void layer_norm(const NormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation);

/// The same for x + added, which is also written to `sum`. `sum` may be one of the two.
void layer_norm_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation);

/// Number of rows whose parts of the weight's and the bias's gradient are summed together.
inline constexpr int64_t kNormRows = 64;
inline int64_t norm_row_blocks(int64_t rows) { return (rows + kNormRows - 1) / kNormRows; }

/// Inputs and outputs of the gradient of a norm over the features.
struct NormGradient {
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;  ///< null: of rms_norm
  const float* inverse_deviation = nullptr;
  const float* dy = nullptr;
  const float* added = nullptr;  ///< added to dx, and may be it; null: nothing
  float* dx = nullptr;
  float* products = nullptr;  ///< [blocks of kNormRows rows, features]: Σ dy n over the block
  float* totals = nullptr;    ///< the same of dy; null where mean is
};

/// With n_j = (x_j − μ) ρ and g_j = dy_j w_j, and ⟨·⟩ the mean over the row:
/// dx_j = ρ (g_j − ⟨g⟩ − n_j ⟨g n⟩), or ρ (g_j − n_j ⟨g n⟩) without a mean. The sums of `products`
/// and `totals` over the blocks are the gradients of weight and bias. *Shapes:* as above; dx [rows,
/// features], no input but `added`.
void layer_norm_gradient(const NormShape& shape, const NormGradient& gradient);

}  // namespace lacuna
