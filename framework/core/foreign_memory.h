// Tensors over memory that is not lacuna's: arrays of other libraries, used without a copy.
#pragma once

#include <memory>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// A row-major tensor over `data`, which `owner` keeps for as long as a tensor uses it. Kernels
/// read up to 16 bytes past a tensor's end, so memory that ends that near to the end of a page is
/// copied (with the address sanitizer, all memory is). *Requires* shape.numel() floats, aligned as
/// floats are. *Lifetime:* writes to the tensor change `data`; do not use it as the
/// array that gradients are added to.
Tensor tensor_over(const Shape& shape, float* data, std::shared_ptr<const void> owner);

}  // namespace lacuna
