// Sums over a tensor's batch.
#pragma once

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Sum over all leading dimensions, in an order that does not depend on the number of threads.
/// *Shapes:* x [..., features] in either order → [features].
Tensor sum_rows(const Tensor& x);

}  // namespace lacuna
