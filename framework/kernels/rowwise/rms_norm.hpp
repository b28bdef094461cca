// Normalization by the root of the mean square over the rows of a matrix, and its derivatives.
#pragma once

#include <cstdint>

#include "lacuna/framework/kernels/rowwise/norm.hpp"

namespace lacuna {

/// y_j = x_j ρ w_j with ρ = 1/√(⟨x²⟩ + eps), ⟨·⟩ the mean over the row. *Shapes:* x, y [rows,
/// features]; weight [features]; inverse_root [rows], written for the backward pass. y may be x.
/// *Source:* Zhang and Sennrich, arXiv:1910.07467.
void rms_norm(const NormShape& shape, double eps, const float* x, const float* weight, float* y,
              float* inverse_root);

/// With n_j = x_j ρ and g_j = dy_j w_j: dx_j = ρ (g_j − n_j ⟨g n⟩), and product_j = dy_j n_j, whose
/// sum over the rows is the weight's gradient. *Shapes:* as above; dx and product [rows, features],
/// neither of them an input.
void rms_norm_gradient(const NormShape& shape, const float* x, const float* weight,
                       const float* inverse_root, const float* dy, float* dx, float* product);

}  // namespace lacuna
