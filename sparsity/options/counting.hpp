// The counting rules: how many nonzeros a fraction means. In float32, as the field's tools count.
#pragma once

#include <cstdint>

namespace lacuna {

/// Nonzeros that a sparsity in [0, 1] leaves of `numel`: int((1 − s)·numel) in float32, truncated.
int64_t target_nnz(float sparsity, int64_t numel);
/// Kept of `nnz` nonzeros in each of `groups`: int((1 − f)·nnz / groups) in float32, truncated.
int64_t kept_after_drop(float drop_fraction, int64_t nnz, int64_t groups = 1);

}  // namespace lacuna
