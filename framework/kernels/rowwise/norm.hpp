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

/// With n_j = (x_j − μ) ρ and g_j = dy_j w_j, and ⟨·⟩ the mean over the row:
/// dx_j = ρ (g_j − ⟨g⟩ − n_j ⟨g n⟩), and product_j = dy_j n_j, whose sum over the rows is the
/// weight's gradient. *Shapes:* as above; dx and product [rows, features], neither of them an
/// input.
void layer_norm_gradient(const NormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         float* dx, float* product);

}  // namespace lacuna
