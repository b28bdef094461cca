// The weight gradient of a stream together with what passes by: see csr.hpp.
#pragma once

#include "lacuna/framework/kernels/csr/csr.hpp"

namespace lacuna {

/// As the csr_gradient of csr.hpp; `dy_sums` [rows], if not null, becomes Σ dy over the batch: a
/// bias's gradient costs no pass of its own.
void csr_gradient(const CsrStream& stream, const float* dy, const float* x, int64_t batch,
                  Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
