// The weight gradient of an N:M matrix together with what passes by: see nm.hpp.
#pragma once

#include "lacuna/framework/kernels/nm/nm.hpp"

namespace lacuna {

/// As the nm_gradient of nm.hpp; `dy_sums` [rows], if not null, becomes Σ dy over the batch: a
/// bias's gradient costs no pass of its own. *Requires* a column at least, then.
void nm_gradient(const NmMatrix& matrix, const float* dy, const float* x, int64_t batch,
                 Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
