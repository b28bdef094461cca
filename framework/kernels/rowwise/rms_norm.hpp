// Normalization by the root of the mean square over the rows of a matrix.
#pragma once

#include <cstdint>

#include "lacuna/framework/kernels/rowwise/norm.hpp"

namespace lacuna {

/// y_j = x_j ρ w_j with ρ = 1/√(⟨x²⟩ + eps), ⟨·⟩ the mean over the row. *Shapes:* x, y [rows,
/// features]; weight [features]; inverse_root [rows], written for the backward pass, which is
/// that of layer_norm_gradient without a mean. y may be x.
/// *Source:* Zhang and Sennrich, arXiv:1910.07467.
void rms_norm(const NormShape& shape, double eps, const float* x, const float* weight, float* y,
              float* inverse_root);

/// The same of x + added, which is written to `sum` on the way. `sum` may be one of the two.
void rms_norm_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                     const float* weight, float* sum, float* y, float* inverse_root);

}  // namespace lacuna
