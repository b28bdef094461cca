// The weight gradient of cells together with what passes by: see block_products.hpp.
#pragma once

#include "lacuna/framework/kernels/blocks/block_products.hpp"

namespace lacuna {

/// As the block_gradient of block_products.hpp; `dy_sums` [rows], if not null, becomes Σ dy over
/// the batch: a bias's gradient costs no pass of its own.
void block_gradient(const BlockStream& stream, const float* dy, const float* x, int64_t batch,
                    Accumulate accumulate, float* gradient, float* dy_sums);

}  // namespace lacuna
