// Layer and root-mean-square normalization of activations in slabs of the batch.
#pragma once

#include "lacuna/framework/kernels/rowwise/norm.hpp"

namespace lacuna {

/// As `layer_norm`, of x in slabs [rows/64][features][64], and of `rms_norm` where `bias` and
/// `mean` are null. y is zero in the padding of the last slab. *Shapes:* x and y in slabs; weight,
/// bias [features]; mean, inverse_deviation [rows rounded up to 64]. *Cost:* three passes over a
/// slab, two where there is no mean, vectors of examples.
void norm_slabs(const NormShape& shape, double eps, const float* x, const float* weight,
                const float* bias, float* y, float* mean, float* inverse_deviation);

/// The same of x + added, in slabs, which is written to `sum` on the way. `sum` may be one of the
/// two.
void norm_slabs_of_sum(const NormShape& shape, double eps, const float* x, const float* added,
                       const float* weight, const float* bias, float* sum, float* y, float* mean,
                       float* inverse_deviation);

/// As `layer_norm_gradient`, of which each slab is a block of rows. dx is zero in the padding; x
/// and dy may hold anything there. *Cost:* two passes over a slab.
void norm_slabs_gradient(const NormShape& shape, const NormGradient& gradient);

}  // namespace lacuna
