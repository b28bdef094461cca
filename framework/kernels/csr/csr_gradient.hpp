// The weight gradient of a stream, with the bias gradient from the same pass: see csr.hpp.
#pragma once

#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna {

/// As the csr_gradient of csr.hpp. If `dy_sums` [rows] is not null, it becomes Σ dy over the batch,
/// so that a bias's gradient needs no separate pass.
void csr_gradient(const CsrStream& stream, const float* dy, const float* x, int64_t batch,
                  Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
