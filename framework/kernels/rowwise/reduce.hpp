// Sums over a tensor's batch, and over all elements.
#pragma once

#include <span>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Sum over all leading dimensions, in an order that does not depend on the number of threads.
/// *Shapes:* x [..., features] in either order → [features]; zeros without rows.
/// *Cost:* one read of x; a buffer of rows/128 · features floats when there are more than 128 rows.
Tensor sum_rows(const Tensor& x);

/// Sum of all values, in double over sums of 1024 floats.
double sum(std::span<const float> values);

}  // namespace lacuna
