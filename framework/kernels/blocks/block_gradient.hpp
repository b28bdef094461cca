// The weight gradient of cells, with the bias gradient from the same pass: see block_products.hpp.
#pragma once

#include "lacuna/framework/kernels/blocks/block_products.hpp"

namespace lacuna {

/// As the block_gradient of block_products.hpp. If `dy_sums` [rows] is not null, it becomes Σ dy
/// over the batch, so that a bias's gradient needs no separate pass.
void block_gradient(const BlockStream& stream, const float* dy, const float* x, int64_t batch,
                    Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
