// The weight gradient of an N:M matrix, with the bias gradient from the same pass: see nm.hpp.
#pragma once

#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// As the nm_gradient of nm.hpp. If `dy_sums` [rows] is not null, it becomes Σ dy over the batch,
/// so that a bias's gradient needs no separate pass. This *requires* at least one column.
void nm_gradient(const NmMatrix& matrix, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
