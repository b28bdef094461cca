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

/// As `layer_norm_gradient` and, where `mean` is null, `rms_norm_gradient`. What it makes of the
/// padding is unspecified.
void norm_slabs_gradient(const NormShape& shape, const float* x, const float* weight,
                         const float* mean, const float* inverse_deviation, const float* dy,
                         float* dx, float* product);

}  // namespace lacuna
